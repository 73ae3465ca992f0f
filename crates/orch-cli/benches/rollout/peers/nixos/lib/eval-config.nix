# NixOS as far as colmena's own modules speak of it: the real module system, and the stand-in's system in the end.
{
  modules,
  specialArgs ? { },
  system ? builtins.currentSystem,
}:

let
  data = builtins.fromJSON (builtins.readFile (builtins.getEnv "ORCH_BENCH_DATA"));
  lib = import (data.lib + "/lib");
  anything = lib.mkOption {
    type = lib.types.anything;
    default = { };
  };
in
lib.evalModules {
  specialArgs = specialArgs // {
    pkgs = { inherit lib system; };
  };
  modules = modules ++ [
    (
      { config, ... }:
      {
        options = {
          assertions = anything;
          warnings = anything;
          nixpkgs = anything;
          system.activationScripts = anything;
          system.build = anything;
          systemd = anything;
          networking.hostName = lib.mkOption { default = config.standIn.node; };
          users = anything;
          standIn.node = lib.mkOption { type = lib.types.str; };
        };
        config.system.build.toplevel = builtins.head (
          import data.fleet {
            inherit (data) nixpkgs module;
            nodes = config.standIn.node;
          }
        );
      }
    )
  ];
}
