# The same hosts by the same modules in one evaluation, each with a nixpkgs of its own, as tools make it that call NixOS once for
# each host.
{
  input,
  nixpkgs,
  library,
}:

let
  asked = builtins.fromJSON (builtins.readFile input);
  orch = import library { lib = import (nixpkgs + "/lib"); };
  one =
    identity: node:
    (orch.evaluate {
      inherit nixpkgs;
      inherit (asked) site;
      nodes.${identity} = node;
    }).${identity};
in
builtins.mapAttrs (identity: node: orch.plain (one identity node)) asked.nodes
