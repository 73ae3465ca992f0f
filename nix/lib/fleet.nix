# Nodes in, NixOS systems out: one evaluation for all of them.
{ lib }:

let
  modulePath = import ./module-path.nix;
  instances = import ./instances.nix { inherit lib; };

  # Evaluates every node. `nodes` is what orch resolved, by identity; the result is as lazy as the module system.
  evaluate =
    {
      site,
      nixpkgs,
      nodes,
      # Modules that every node gets.
      modules ? [ ],
      # Arguments for modules, known before their imports are.
      specialArgs ? { },
    }:
    let
      evalConfig = import (nixpkgs + "/nixos/lib/eval-config.nix");

      evaluated = builtins.mapAttrs (
        identity: node:
        evalConfig {
          # What a node says of its own platform in `nixpkgs.hostPlatform` wins over this.
          system = if node.platform or null == null then builtins.currentSystem else node.platform;
          inherit specialArgs;
          modules = [
            ./options.nix
            (import ./node.nix { inherit identity node; })
            (shared.module identity)
          ]
          ++ modules
          ++ map (modulePath site) (node.modules or [ ]);
        }
      ) nodes;

      shared = instances { inherit nixpkgs evaluated; };
    in
    builtins.mapAttrs result evaluated;

  result = identity: { config, pkgs, ... }: {
    inherit config pkgs;
    inherit (config.system.build) toplevel;
    inherit (config.orch) health secrets tags deploy;
    system = pkgs.stdenv.hostPlatform.system;
  };

  # What of a node can cross a pipe. The paths lose their context: whoever reads them has the derivation in the store.
  # There is no key `outPath`, because Nix writes whatever has one as that path alone.
  plain = node: {
    drvPath = builtins.unsafeDiscardStringContext node.toplevel.drvPath;
    toplevel = builtins.unsafeDiscardStringContext node.toplevel.outPath;
    inherit (node) system health secrets tags;
  };
in
{
  inherit evaluate plain;
}
