# A stand-in for NixOS, for tests without nixpkgs: real derivations, a real `switch-to-configuration`, no packages.
#
# Of a module it reads `imports`, `orch` and `standIn`; of two that say the same key, the later one wins:
#
#   standIn = {
#     activate = "shell lines that `switch-to-configuration test` runs";
#     check = "shell lines that run before anything is changed; `exit 100` means: can only be booted";
#     files = { "etc/motd" = "text"; };           # files in the system
#     units = { "web.service" = "[Service]"; };   # files in its etc/systemd/system
#     kernel = "6.1"; initrd = "1"; systemd = "252";   # other words mean: needs a reboot
#     version = "25.11";
#     references = [ "/nix/store/…" ];            # what else the closure holds
#   };
{
  system ? builtins.currentSystem,
  modules ? [ ],
  specialArgs ? { },
  lib ? import ../../lib,
  ...
}:

let
  pkgs = {
    inherit lib system;
    stdenv.hostPlatform = { inherit system; };
  };

  arguments = specialArgs // {
    inherit lib pkgs config;
    options = { };
  };

  load =
    module:
    let
      content = if builtins.isPath module || builtins.isString module then import module else module;
      applied = if builtins.isFunction content then content arguments else content;
    in
    builtins.concatMap load (applied.imports or [ ]) ++ [ applied ];

  loaded = builtins.concatMap load modules;

  # Sets in a set are merged, everything else is the last one's.
  join =
    one: other:
    one
    // builtins.mapAttrs (
      name: value:
      if builtins.isAttrs value && builtins.isAttrs (one.${name} or null) then
        one.${name} // value
      else
        value
    ) other;
  merge = key: builtins.foldl' (all: module: join all (module.${key} or { })) { } loaded;

  standIn = {
    activate = "";
    check = "";
    files = { };
    units = { };
    kernel = "6.1";
    initrd = "1";
    systemd = "252";
    version = "0";
    references = [ ];
  }
  // merge "standIn";

  config = {
    orch = merge "orch";
    inherit standIn;
    system.build.toplevel = import ./toplevel.nix {
      inherit system;
      inherit (standIn)
        activate
        check
        files
        units
        kernel
        initrd
        systemd
        version
        references
        ;
      hostname = config.orch.node.config.hostname or config.orch.node.name or "nixos";
    };
  };
in
{
  inherit config pkgs;
  options = { };
}
