# The few packages that the modules mention, as names. Nothing of them is built.
{ lib, nixpkgs }:

let
  # What a package is made from is part of it, as it is of a real one: whoever wants its path has all of that evaluated.
  named =
    name: from:
    derivation {
      inherit name;
      system = "x86_64-linux";
      builder = "/bin/sh";
      from = builtins.toJSON from;
    }
    // from;

  pkgs = {
    coreutils = named "coreutils" { };
    # A file is a package of ours; a function is one of `formats`, and gets what it asks for.
    callPackage =
      what: arguments:
      if builtins.isPath what then
        named (arguments.program or "orch") { }
      else
        what (builtins.intersectAttrs (lib.functionArgs what) pkgs // arguments);
    formats = import (nixpkgs + "/pkgs/pkgs-lib/formats.nix") { inherit lib pkgs; };
    # `formats` writes by this one; what it was to write is all that matters here.
    runCommand =
      name: arguments: _:
      named name { inherit (arguments) value; };
    linkFarm = name: entries: named name { inherit entries; };
    remarshal = named "remarshal" { };
    remarshal_0_17 = named "remarshal" { };
    buildPackages = pkgs;
  };
in
pkgs
