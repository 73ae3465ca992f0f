{ lib, orch }:

let
  app = {
    type = "app";
    program = lib.getExe orch;
    meta = { inherit (orch.meta) description; };
  };
in
{
  orch = app;
  default = app;
}
