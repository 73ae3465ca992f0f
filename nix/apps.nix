# `nix run .#orch -- create -M nested-test -H father`
{ lib, packages }:

let
  app = package: {
    type = "app";
    program = lib.getExe package;
    meta = { inherit (package.meta) description; };
  };
in
{
  orch = app packages.orch;
  default = app packages.orch;
}
