# What is built, from one nixpkgs. The overlay and the flake's `packages` are both this.
{ pkgs }:

rec {
  orch = pkgs.callPackage ./package.nix {
    # What is brought to nodes must run on any of them, and `orch` itself is linked to libraries of this store.
    nodeProgram = orch-node-static;
  };

  # For NixOS, where its libraries come along.
  orch-node = pkgs.callPackage ./package.nix { program = "orch-node"; };

  # For nodes with whatever libraries.
  orch-node-static = pkgs.pkgsStatic.callPackage ./package.nix { program = "orch-node"; };
}
