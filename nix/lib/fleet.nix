# Nodes in, NixOS systems out: one evaluation for all of them.
{ lib }:

let
  folder = import ./folder.nix { inherit lib; };
  instances = import ./instances.nix { inherit lib; };
  modulePath = import ./module-path.nix;
  typed = import ./typed.nix { inherit lib; };

  # Evaluates every node. `nodes` is what orch resolved, by identity; the result is as lazy as the module system.
  evaluate =
    {
      # The folder that the modules of nodes are in.
      site,
      # The folder with nixpkgs.
      nixpkgs,
      nodes,
      # Modules that every node gets.
      modules ? [ ],
      # Arguments for modules, known before their imports are.
      specialArgs ? { },
      # Overlays of all nodes. Nodes that add none of their own, and agree on system and config, share one nixpkgs.
      overlays ? [ ],
    }:
    let
      evalConfig = import (nixpkgs + "/nixos/lib/eval-config.nix");
      shared = instances { inherit nixpkgs overlays; };
      evaluateOne =
        identity: node:
        evalConfig {
          # What a node says of its own platform in `nixpkgs.hostPlatform` wins over this. A pure evaluation, such as a flake's, has no
          # current system; there a node must say it.
          system = if node.platform or null == null then builtins.currentSystem or null else node.platform;
          inherit specialArgs;
          modules = [
            ./options.nix
            shared
          ]
          ++ import ./node.nix { inherit identity node; }
          ++ modules
          ++ map (pathOf site) (node.modules or [ ]);
        };
    in
    builtins.mapAttrs (identity: node: result (evaluateOne identity node)) nodes;

  # In data a module is text, a path inside of the site; Nix code may hand over modules themselves.
  pathOf = site: module: if builtins.isString module then modulePath site module else module;

  result =
    { config, pkgs, ... }:
    {
      inherit config pkgs;
      inherit (config.system.build) toplevel;
      inherit (config.orch)
        health
        secrets
        tags
        deploy
        ;
      system = pkgs.stdenv.hostPlatform.system;
    };

  # What of a node can cross a pipe. The paths lose their context: whoever reads them has the derivation in the store.
  # There is no key `outPath`, because Nix writes whatever has one as that path alone.
  plain = node: {
    drvPath = builtins.unsafeDiscardStringContext node.toplevel.drvPath;
    toplevel = builtins.unsafeDiscardStringContext node.toplevel.outPath;
    inherit (node)
      system
      health
      secrets
      tags
      ;
  };

  # A site as Nix code sees it. Every kind of file may be given as a folder, or as a set by name:
  #   nodes      by identity, what orch resolved into `fleet` (the file that it evaluates; see evaluate.nix), evaluated
  #   hosts      by name, those that are NixOS themselves, evaluated
  #   manifests  by name, those that Nix can read, held against their types
  # Resolving is orch's: here is no second resolver that could differ from it.
  mkFleet =
    {
      nixpkgs,
      site ? null,
      manifests ? { },
      hosts ? { },
      specs ? null,
      presets ? null,
      fleet ? null,
      modules ? [ ],
      specialArgs ? { },
      overlays ? [ ],
    }:
    let
      resolved = if fleet == null then { nodes = { }; } else builtins.fromJSON (builtins.readFile fleet);
      given = {
        inherit
          nixpkgs
          modules
          specialArgs
          overlays
          ;
        site =
          if site != null then
            site
          else
            resolved.site or (throw "mkFleet needs `site`, the folder of the site, or a `fleet`");
      };

      # `host.father@father`, as orch calls a host that is deployed itself.
      identify = name: "host.${name}@${name}";
      asNode = name: module: {
        name = identify name;
        value = {
          inherit name;
          kind = "host";
          modules = [ module ];
        };
      };
      hostModules = folder.modules hosts;
      evaluatedHosts = evaluate (given // { nodes = lib.mapAttrs' asNode hostModules; });

      known = {
        spec = folder.names specs;
        preset = folder.names presets;
        host = if hosts == { } then null else folder.names hosts;
      };
    in
    {
      nodes = evaluate (given // { inherit (resolved) nodes; });
      hosts = builtins.mapAttrs (name: _: evaluatedHosts.${identify name}) hostModules;
      manifests = builtins.mapAttrs (
        name: value: references known name (named name (typed.manifest "manifests/${name}" value))
      ) (lib.filterAttrs (_: value: value != null) (folder.contents manifests));
    };

  named =
    name: manifest:
    if manifest.name == name then
      manifest
    else
      throw "manifest `${name}` calls itself `${manifest.name}`; the name of a file is its key";

  # Where the names of a kind are known, a node may mention those only.
  references =
    known: manifest: value:
    let
      missing = builtins.concatMap (
        node:
        builtins.concatMap (
          kind:
          lib.optional (
            node.${kind} or null != null && known.${kind} != null && !builtins.elem node.${kind} known.${kind}
          ) "node `${node.name}` has ${kind} `${node.${kind}}`, which this site does not have"
        ) (builtins.attrNames known)
      ) value.nodes;
    in
    if missing == [ ] then
      value
    else
      throw "manifest `${manifest}`: ${builtins.concatStringsSep "; " missing}";
in
{
  inherit evaluate mkFleet plain;
}
