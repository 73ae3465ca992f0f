# The reference of the options is what the modules say today, and says of each what it takes, what it means and an example.
{
  lib,
  harness,
  nixpkgs,
}:

let
  inherit (harness) result;
  reference = import ../../nix/options.nix { inherit lib nixpkgs; };
  written = builtins.readFile ../../docs/options.md;
  lacking =
    option:
    lib.filter (part: !(option ? ${part})) [
      "type"
      "description"
      "example"
    ];
  bare = lib.filter (option: lacking option != [ ]) reference.options;
in
[
  (result "docs/options.md is what the modules say" (
    if written == reference.text then
      null
    else
      "it differs; `tests/modules/run --update` writes it anew"
  ))
  (result "every option has a type, a description and an example" (
    if reference.options == [ ] then
      "there are no options"
    else if bare == [ ] then
      null
    else
      lib.concatMapStringsSep "; " (option: "${option.name} lacks ${toString (lacking option)}") bare
  ))
]
