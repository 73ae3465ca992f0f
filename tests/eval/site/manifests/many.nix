# Twenty machines, said once.
{ lib, ... }:
{
  schema_version = 2;
  name = "many";
  nodes = map (number: {
    name = "web-${toString number}";
    type = "vm";
    spec = "web";
  }) (lib.range 1 20);
}
