# orch's library for Nix. It needs the `lib` of nixpkgs and nothing else of it, until a system is evaluated.
{ lib }:

{
  inherit (import ./fleet.nix { inherit lib; }) evaluate mkFleet plain;
}
