# The same systems for the script as for orch, but for what orch adds: one for each node, in their order.
{
  nixpkgs,
  module,
  # Their names, with a space between two.
  nodes,
}:

let
  evalConfig = import (nixpkgs + "/nixos/lib/eval-config.nix");
  names = builtins.filter builtins.isString (builtins.split " " nodes);
  one =
    name:
    (evalConfig {
      modules = [
        { orch.node.name = name; }
        module
      ];
    }).config.system.build.toplevel;
in
map one names
