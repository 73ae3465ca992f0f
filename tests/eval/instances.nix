# Nodes that agree share one nixpkgs, and nothing comes out differently for it.
{
  nixpkgs,
  lib,
  library,
  ...
}:

let
  orch = import library { inherit lib; };

  machine = name: {
    boot.loader.grub.device = "nodev";
    fileSystems."/" = {
      device = "/dev/disk/by-label/root";
      fsType = "ext4";
    };
    system.stateVersion = "21.05";
    networking.hostName = name;
  };

  overlay = final: prev: {
    marked = prev.hello.overrideAttrs (_: {
      pname = "marked";
    });
  };

  modules = {
    bare = [ (machine "bare") ];
    again = [ (machine "again") ];
    unfree = [
      (machine "unfree")
      { nixpkgs.config.allowUnfree = true; }
    ];
    alike = [
      (machine "alike")
      { nixpkgs.config.allowUnfree = true; }
    ];
    judge = [
      (machine "judge")
      { nixpkgs.config.allowUnfreePredicate = _: true; }
    ];
    patched = [
      (machine "patched")
      { nixpkgs.overlays = [ overlay ]; }
      ({ pkgs, ... }: { environment.systemPackages = [ pkgs.marked ]; })
    ];
  };

  shared = orch.evaluate {
    site = ./site;
    inherit nixpkgs;
    nodes = nodesOf modules;
  };

  nodesOf = lib.mapAttrs (
    name: modules: {
      inherit name modules;
      kind = "host";
      platform = "x86_64-linux";
    }
  );

  # As NixOS does it by itself: an instance for each.
  separate = lib.mapAttrs (
    _: modules:
    import (nixpkgs + "/nixos/lib/eval-config.nix") {
      system = "x86_64-linux";
      inherit modules;
    }
  ) modules;

  # One of each kind: whole systems are what costs here.
  compared = [
    "bare"
    "unfree"
    "patched"
  ];
  drvs = lib.mapAttrs (_: node: node.config.system.build.toplevel.drvPath);

  # A package is evaluated once for each instance that is made.
  made = "an instance is made";
  counted =
    names:
    lib.mapAttrs (_: node: node.pkgs.hello.name) (
      orch.evaluate {
        site = ./site;
        inherit nixpkgs;
        overlays = [ (_: prev: { hello = builtins.trace made prev.hello; }) ];
        nodes = nodesOf (lib.getAttrs names modules);
      }
    );
  count = times: names: {
    value = counted names;
    words = made;
    inherit times;
  };
in
{
  tests = {
    "derivations are those of separate instances" = {
      is = drvs (lib.getAttrs compared shared);
      wanted = drvs (lib.getAttrs compared separate);
    };
    "a config holds: what it allows is allowed" = {
      is = map (name: shared.${name}.pkgs.config.allowUnfree or false) [
        "bare"
        "unfree"
        "alike"
      ];
      wanted = [
        false
        true
        true
      ];
    };
    "an overlay for all is there once, beside a node's own" = {
      is =
        let
          overlaid = orch.evaluate {
            site = ./site;
            inherit nixpkgs;
            overlays = [ (_: prev: { counter = prev.counter or 0 + 1; }) ];
            nodes = nodesOf modules;
          };
        in
        lib.mapAttrs (_: node: node.pkgs.counter) overlaid;
      wanted = lib.mapAttrs (_: _: 1) modules;
    };
  };

  counts = {
    "one node makes one" = count 1 [ "bare" ];
    "nodes without a config of their own share one" = count 1 [
      "bare"
      "again"
    ];
    "nodes with the same config share one" = count 1 [
      "unfree"
      "alike"
    ];
    "nodes with another config do not" = count 2 [
      "bare"
      "again"
      "unfree"
      "alike"
    ];
    "nor do nodes with functions in their config, or with overlays" = count 3 [
      "bare"
      "judge"
      "patched"
    ];
  };
}
