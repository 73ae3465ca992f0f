# What the NixOS modules promise, as a list of `{ name, why }`; `why` is null where a promise holds.
#
# It takes the `lib` of a nixpkgs and no package of it, and so runs with any Nix since 2.8.
{ nixpkgs }:

let
  lib = import (nixpkgs + "/lib");
  harness = import ./harness.nix { inherit lib nixpkgs; };
in
lib.concatMap (file: import file { inherit lib harness nixpkgs; }) [
  ./orchestrator.nix
  ./node.nix
  ./reference.nix
]
