# One node as NixOS modules: what orch knows of it, and what its spec means.
{ identity, node }:

let
  config = node.config or { };
  # Null on hosts whose own module is all there is.
  nixos = if config.nixos or null == null then { } else config.nixos;
  kind = node.kind or "node";

  known = {
    _file = "orch: `${identity}`";
    orch = {
      node = {
        inherit identity kind config;
        inherit (node) name;
        tags = node.tags or [ ];
      };
      health = config.health or [ ];
      secrets = config.secrets or [ ];
      tags = node.tags or [ ];
      deploy = {
        rollout = nixos.rollout or "closure";
        install = nixos.install or null;
      };
    };
  };
in
# A host is what its own module says; only a node has a spec.
[ known ] ++ (if kind == "node" then [ (import ./spec-to-nixos.nix config) ] else [ ])
