# Results for a shell: one promise a line, a tab, and why it does not hold.
{ nixpkgs, results }:

let
  inherit (import (nixpkgs + "/lib")) concatStringsSep replaceStrings;
  flat = text: replaceStrings [ "\n" "\t" ] [ " " " " ] text;
in
{
  text = concatStringsSep "\n" (
    map ({ name, why }: "${flat name}\t${if why == null then "" else flat why}") (
      import results { inherit nixpkgs; }
    )
  );
}
