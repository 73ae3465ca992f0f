# A manifest that is written in Nix, as JSON.
#
#   nix-instantiate --eval --strict --json manifest.nix --argstr file FILE [--argstr nixpkgs FOLDER]
#
# With a nixpkgs it is held against the types of orch, which say where a mistake is. Without one, a manifest that is plain data passes
# as it is, and orch's own reader checks it; both refuse the same.
{
  # The file: a manifest, or a function from `{ lib, ... }` to one.
  file,
  # A folder with nixpkgs, of which only `lib` is read.
  nixpkgs ? null,
}:

let
  path = if builtins.isPath file then file else /. + builtins.unsafeDiscardStringContext file;
  written = import path;
  lib = import (import ./nixpkgs.nix { inherit nixpkgs; } + "/lib");
  typed = import ./typed.nix { inherit lib; };
in
if nixpkgs == null && !builtins.isFunction written then
  written
else
  typed.manifest (baseNameOf path) written
