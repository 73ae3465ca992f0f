# The reference of the modules' options, as text. It needs the `lib` of a nixpkgs alone, so that it is the same wherever it is written.
{ lib, nixpkgs }:

let
  pkgs = {
    formats = import (nixpkgs + "/pkgs/pkgs-lib/formats.nix") { inherit lib pkgs; };
  };

  # Only what is declared matters, so nothing that is defined needs a place.
  evaluated = lib.evalModules {
    modules = [
      { _module.check = false; }
      ./modules/orchestrator
      ./modules/node
    ];
    specialArgs = { inherit pkgs; };
  };

  isOurs = option: lib.hasPrefix "services." option.name && option.visible && !option.internal;

  options = lib.filter isOurs (lib.optionAttrSetToDocList { inherit (evaluated.options) services; });

  # `{option}` is how NixOS's own manual marks the name of an option.
  plain = lib.replaceStrings [ "{option}" ] [ "" ];

  # Values are short, and a list of options can be skimmed where each stands on one line.
  literal = value: lib.concatMapStringsSep " " lib.trim (lib.splitString "\n" value.text);

  entry =
    option:
    lib.concatStringsSep "\n" (
      [
        "## ${option.name}"
        ""
        (plain (lib.trim option.description))
        ""
        "- type: ${plain option.type}"
      ]
      ++ lib.optional (option ? default) "- default: `${literal option.default}`"
      ++ lib.optional (option ? example) "- example: `${literal option.example}`"
      ++ [ "" ]
    );
in
{
  inherit options;
  text = ''
    # Options of the NixOS modules

    Written by `tests/modules/run --update`; do not edit by hand. What the modules are for: [nixos-modules.md](nixos-modules.md).

  ''
  + lib.concatMapStringsSep "\n" entry options;
}
