# A manifest that is written in Nix, as JSON.
#
#   nix-instantiate --eval --strict --json manifest.nix --argstr file FILE [--argstr nixpkgs FOLDER]
#
# With a nixpkgs it is held against the types of orch, which say where a mistake is. Without one, or with one that has no module
# system, plain data passes as it is. Whatever comes out, orch's own reader checks it like every other manifest.
{
  # The file: a manifest, or a function from `{ lib, ... }` to one.
  file,
  # A folder with nixpkgs, of which only `lib` is read.
  nixpkgs ? null,
  # The site, whose flake.lock names the nixpkgs of a function where none is given.
  site ? null,
}:

let
  path = if builtins.isPath file then file else /. + builtins.unsafeDiscardStringContext file;
  written = import path;
  lib = import (import ./nixpkgs.nix { inherit nixpkgs site; } + "/lib");
  typed = import ./typed.nix { inherit lib; };
in
if nixpkgs == null && !builtins.isFunction written then
  written
else if lib ? evalModules then
  typed.manifest (baseNameOf path) written
else
  typed.open written
