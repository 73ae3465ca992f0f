# docs/options.md as it should be, with the `lib` of a nixpkgs.
{ nixpkgs }:

import ../../nix/options.nix {
  inherit nixpkgs;
  lib = import (nixpkgs + "/lib");
}
