# Manifests in Nix on a machine without nixpkgs.
{ nixpkgs, library, ... }:

let
  read = arguments: import (library + "/manifest.nix") arguments;
  plain = toString ./site/manifests/plain.nix;
in
{
  tests = {
    "a manifest that is plain data passes without a nixpkgs, as it is written" = {
      is = read { file = plain; };
      wanted = import ./site/manifests/plain.nix;
    };
    "and with one that has no module system" = {
      is = read {
        file = plain;
        nixpkgs = toString nixpkgs;
      };
      wanted = import ./site/manifests/plain.nix;
    };
    "a nixpkgs that was named is the one that counts" = {
      is = toString (
        import (library + "/nixpkgs.nix") {
          nixpkgs = toString nixpkgs;
          site = toString ./site;
        }
      );
      wanted = toString nixpkgs;
    };
    "else the one that the site's flake.lock pins, through what it follows" = {
      is = toString (import (library + "/nixpkgs.nix") { site = toString ./locked; });
      wanted = "/somewhere/nixpkgs";
    };
  };

  refusals = {
    "a manifest that is a function, where there is no nixpkgs" = {
      value = read { file = toString ./site/manifests/many.nix; };
      words = "there is no nixpkgs: name a folder with --nixpkgs or ORCH_NIXPKGS";
    };
    "a manifest that is not there" = {
      value = read { file = toString ./site/manifests/none.nix; };
      words = "none.nix";
    };
  };
}
