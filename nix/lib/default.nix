# orch's library for Nix. It needs the `lib` of nixpkgs and nothing else of it, until a system is evaluated.
{ lib }:

{
  inherit (import ./fleet.nix { inherit lib; }) evaluate mkFleet plain;

  # Words, numbers and mentions as option types.
  types = import ./types.nix { inherit lib; };

  # Checks a manifest or a host that is written in Nix, and gives plain data: `typed.manifest "manifests/web.nix" { … }`.
  typed = import ./typed.nix { inherit lib; };

  # The options `orch.*` that every node has, for documentation.
  nodeOptions = ./options.nix;
}
