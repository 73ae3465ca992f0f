# What a spec means on NixOS, property by property: what is on the node, and what it tells orch.
{
  nixpkgs,
  lib,
  library,
  ...
}:

let
  fixture = import ./role.nix { inherit nixpkgs lib library; };
  inherit (fixture)
    role
    node
    text
    file
    full
    other
    ;
  inherit (fixture.full)
    config
    toplevel
    deploy
    health
    secrets
    tags
    ;

  # Put together, because Nix shows lines of files in its messages, this one's too.
  literal = "hunter" + toString 2;

  drv = more: module: (node more module).toplevel.drvPath;
  # Less than a whole system, for what is refused long before there is one.
  installed =
    packages:
    map (package: package.name) (node { inherit packages; } { }).config.environment.systemPackages;
  written = files: (node { inherit files; } { }).config.environment.etc.x.text;
  packages = map lib.getName config.environment.systemPackages;
  # What the model has: a field that is new there must be thought of here.
  source = builtins.readFile ../../crates/orch-model/src/config.rs;
  struct = builtins.head (
    builtins.split "\n}" (builtins.elemAt (builtins.split "pub struct Role [{]" source) 2)
  );
  fields = map builtins.head (
    builtins.filter builtins.isList (builtins.split "pub ([a-z0-9_]+):" struct)
  );
  # When a node converges again and who else can read its secrets is between it and orch.
  elsewhere = [
    "enroll_recipient"
    "run"
  ];

  ours = builtins.filter (lib.hasPrefix "f+ ") config.systemd.tmpfiles.rules;
in
{
  tests = {
    "it comes to a derivation" = {
      is = lib.hasSuffix ".drv" toplevel.drvPath;
      wanted = true;
    };
    "packages: by their name, by Debian's, inside of a set, by the site's own" = {
      is = map (name: builtins.any (lib.hasInfix name) packages) [
        "htop"
        "net-tools"
        "pip"
        "hello"
      ];
      wanted = [
        true
        true
        true
        true
      ];
    };
    "packages: every name that Debian has otherwise is a package here" = {
      is = builtins.filter (
        name: !lib.isDerivation (lib.attrByPath (lib.splitString "." name) null full.pkgs)
      ) (builtins.attrValues (import (library + "/package-names.nix")));
      wanted = [ ];
    };
    "services: every option of another name is one" = {
      is = builtins.filter (path: !lib.hasAttrByPath (path ++ [ "enable" ]) config) (
        builtins.attrValues (import (library + "/service-options.nix"))
      );
      wanted = [ ];
    };
    "services: those with an option of their own" = {
      is = [
        config.services.nginx.enable
        config.services.chrony.enable
        config.services.rpcbind.enable
      ];
      wanted = [
        true
        true
        false
      ];
    };
    "services: units that a module defines are wanted at boot" = {
      is = [
        config.systemd.services.worker.wantedBy
        config.systemd.timers.nightly.wantedBy
      ];
      wanted = [
        [ "multi-user.target" ]
        [ "timers.target" ]
      ];
    };
    "services: one that is not to run cannot" = {
      is = config.systemd.services.stranger.enable;
      wanted = false;
    };
    "services: those that are not named are left alone" = {
      is = [
        other.services.nginx.enable
        (other.systemd.services.worker.wantedBy)
      ];
      wanted = [
        false
        [ ]
      ];
    };
    "files: below /etc, to the letter" = {
      is = map (key: config.environment.etc.motd.${key}) [
        "text"
        "mode"
        "user"
        "group"
      ];
      wanted = [
        text
        "0644"
        "root"
        "root"
      ];
    };
    "files: mode, owner and the owner's group" = {
      is = map (key: config.environment.etc."app/app.conf".${key}) [
        "mode"
        "user"
        "group"
      ];
      wanted = [
        "0664"
        "ops"
        config.users.users.ops.group
      ];
    };
    "files: elsewhere, by systemd, to the letter" = {
      is = ours;
      wanted = [
        "f+ \"/srv/a b/100%%\" 0644 ops ${config.users.users.ops.group} - \\x20\${x}\\x20''\\x20\"\\x20\\\\\\x20%%h\\n\\ttail\\x20"
      ];
    };
    "health, secrets and tags are told" = {
      is = {
        inherit health tags;
        secret = map (secret: { inherit (secret) name path mode; }) secrets;
      };
      wanted = {
        health = [ { tcp = 22; } ];
        tags = [ "front" ];
        secret = [
          {
            name = "key";
            path = "/run/secrets/key";
            mode = "0400";
          }
        ];
      };
    };
    "health: a module adds its own" = {
      is = (node { } { orch.health = [ { unit = "nginx.service"; } ]; }).health;
      wanted = [
        { unit = "nginx.service"; }
        { tcp = 22; }
      ];
    };
    "deploy settings are told" = {
      is = deploy;
      wanted = {
        rollout = "nixos-rebuild";
        install = null;
      };
    };
    "free keys reach modules" = {
      is = config.orch.node.config.config.free;
      wanted = [ "kept" ];
    };
    "hypervisor: with a module that brings it" = {
      is =
        (node { hypervisor = "proxmox"; } {
          options.services.proxmox-ve.enable = lib.mkOption {
            type = lib.types.bool;
            default = false;
          };
        }).config.services.proxmox-ve.enable;
      wanted = true;
    };
    "every field of a role is in the spec of these tests, or has nothing to do with NixOS" = {
      is = builtins.filter (field: !(role ? ${field}) && !builtins.elem field elsewhere) fields;
      wanted = [ ];
    };
    "there are fields to compare" = {
      is = builtins.elem "timezone" fields;
      wanted = true;
    };
  };

  refusals = {
    "a package that there is not" = {
      value = installed [ "no-such-thing" ];
      words = "package `no-such-thing` is not in this nixpkgs: say what it is called there in `orch.packageNames`";
    };
    "a package that is spelled otherwise" = {
      value = installed [ "h-top" ];
      words = "package `h-top` is not in this nixpkgs: did you mean `htop`?";
    };
    "a package of a version" = {
      value = installed [ "vim=2:9.0" ];
      words = "package `vim=2:9.0` asks for a version or an architecture";
    };
    "a package that is a set of packages" = {
      value = installed [ "python3Packages" ];
      words = "package `python3Packages` is something else in nixpkgs";
    };
    "a service that nobody knows" = {
      value = drv { services.enable = [ "nobody" ]; } { };
      words = "orch: service `nobody` is to run, but NixOS has no option `services.nobody.enable`, and no module of the node defines that unit. Have one define or switch it.";
    };
    "a unit that is no service" = {
      value = (node { services.enable = [ "data.mount" ]; } { }).config.systemd.services.worker.wantedBy;
      words = "unit `data.mount` cannot be switched by a spec on NixOS";
    };
    "a file that only some may read" = {
      value = written [ (file "/etc/x" literal // { mode = "0600"; }) ];
      words = "file `/etc/x` has mode 0600, but on NixOS its content could be read in the store by everybody: make it one of `secrets`";
      without = "hunter2";
    };
    "a file that another part of the spec writes" = {
      value = written [ (file "/etc/hostname" "x") ];
      words = "file `/etc/hostname` is written from `identity` of the spec";
    };
    "a file in the store" = {
      value = written [ (file "/nix/store/x" "x") ];
      words = "file `/nix/store/x` cannot be written on NixOS: what is there is Nix's own";
    };
    "a file of somebody who is nobody" = {
      value =
        (node { files = [ (file "/etc/x" "x" // { owner = "ghost"; }) ]; } { })
        .config.environment.etc.x.group;
      words = "`ghost` is to own a file, and is no user of this system";
    };
    "a hypervisor without a module that brings it" = {
      value = (node { hypervisor = "proxmox"; } { }).config.networking.hostName;
      words = "hypervisor `proxmox` is not part of NixOS";
    };
    "a health check that is none" = {
      value = (node { } { orch.health = [ { ping = 1; } ]; }).health;
      words = "health check (exactly one of tcp, http, unit and command)";
    };
    "a literal secret in a module" = {
      value =
        (node { } {
          orch.secrets = [
            {
              name = "x";
              path = "/run/x";
              from = literal;
            }
          ];
        }).secrets;
      words = "never written here";
      without = "hunter2";
    };
  };
}
