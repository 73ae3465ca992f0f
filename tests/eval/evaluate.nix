# What `orch` runs: evaluate.nix, with the stand-in for NixOS.
{ nixpkgs, library, ... }:

let
  input = builtins.toFile "input.json" (
    builtins.toJSON {
      version = 1;
      site = toString ./site;
      nodes = {
        "m.web@h" = node { modules = [ "./hosts/web" ]; };
        "m.arm@h" = node { platform = "aarch64-linux"; };
        "m.bare@h" = node { platform = null; };
        "m.broken@h" = node { modules = [ "hosts/none" ]; };
        "m.out@h" = node { modules = [ "hosts/../../secrets" ]; };
        "m.absolute@h" = node { modules = [ "/etc/nixos" ]; };
      };
    }
  );

  node =
    more:
    {
      name = "web";
      kind = "node";
      modules = [ "hosts/web" ];
      platform = "x86_64-linux";
      tags = [ "front" ];
      config = {
        hostname = "web";
        health = [ { tcp = 22; } ];
        secrets = [
          {
            name = "key";
            path = "/run/secrets/key";
          }
        ];
      };
    }
    // more;

  evaluate =
    only:
    import (library + "/evaluate.nix") {
      inherit input;
      nixpkgs = toString nixpkgs;
      only = builtins.toJSON only;
    };

  one = identity: (evaluate [ identity ]).${identity};
  web = one "m.web@h";
  isStorePath = text: builtins.match "/nix/store/[0-9a-z]{32}-.*" text != null;
in
{
  tests = {
    "a node has the path of its system and of the derivation that makes it" = {
      is =
        map isStorePath [
          web.toplevel
          web.drvPath
        ]
        ++ [ (builtins.match ".*\\.drv" web.drvPath != null) ];
      wanted = [
        true
        true
        true
      ];
    };
    "a system is called by the host name and its version" = {
      is = builtins.match ".*-nixos-system-web-1" web.toplevel != null;
      wanted = true;
    };
    "health checks, secrets and tags are told" = {
      is = { inherit (web) health secrets tags; };
      wanted = {
        health = [ { tcp = 22; } ];
        secrets = [
          {
            name = "key";
            path = "/run/secrets/key";
          }
        ];
        tags = [ "front" ];
      };
    };
    "what is told is data that JSON can hold, and no path has a context" = {
      is = builtins.hasContext (builtins.toJSON web);
      wanted = false;
    };
    "only what was asked for is evaluated, so that a broken node is in nobody's way" = {
      is = builtins.attrNames (evaluate [
        "m.web@h"
        "m.arm@h"
      ]);
      wanted = [
        "m.arm@h"
        "m.web@h"
      ];
    };
    "a platform makes another system" = {
      is = [
        (one "m.arm@h").system
        ((one "m.arm@h").toplevel == web.toplevel)
      ];
      wanted = [
        "aarch64-linux"
        false
      ];
    };
    "without a platform it is this machine's, and none where nothing may be known of this machine" = {
      is = (one "m.bare@h").system;
      wanted = builtins.currentSystem or null;
    };
    "the same node is the same system, however its module is written" = {
      is =
        (import (library + "/evaluate.nix") {
          nixpkgs = toString nixpkgs;
          input = builtins.toFile "again.json" (
            builtins.toJSON {
              version = 1;
              site = toString ./site + "/";
              nodes."m.web@h" = node { modules = [ "hosts//web/default.nix" ]; };
            }
          );
        })."m.web@h".drvPath;
      wanted = web.drvPath;
    };
  };

  refusals = {
    "a module that does not exist" = {
      value = evaluate [ "m.broken@h" ];
      words = "module `hosts/none` does not exist in the site";
    };
    "a module outside of the site" = {
      value = evaluate [ "m.out@h" ];
      words = "module `hosts/../../secrets` is not a path inside of the site";
    };
    "a module by an absolute path" = {
      value = evaluate [ "m.absolute@h" ];
      words = "module `/etc/nixos` is not a path inside of the site";
    };
    "a node that was not among those told" = {
      value = evaluate [ "m.nobody@h" ];
      words = "`m.nobody@h` is not among the nodes";
    };
    "input of another version" = {
      value = import (library + "/evaluate.nix") {
        nixpkgs = toString nixpkgs;
        input = builtins.toFile "new.json" ''{"version":2,"site":"/x","nodes":{}}'';
      };
      words = "is of version 2, and this library reads version 1";
    };
  };
}
