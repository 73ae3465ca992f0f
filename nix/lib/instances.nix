# One nixpkgs for all nodes that agree on system, config and overlays.
{ lib }:
{ nixpkgs, evaluated }:
{
  module = identity: { };
}
