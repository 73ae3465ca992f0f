# One node as a NixOS module: what orch knows of it, and what its spec means.
{ identity, node }:

let
  config = node.config or { };
  nixos = config.nixos or null;
in
{
  _file = "orch: `${identity}`";
  orch = {
    node = {
      inherit identity config;
      inherit (node) name;
      kind = node.kind or "node";
      tags = node.tags or [ ];
    };
    health = config.health or [ ];
    secrets = config.secrets or [ ];
    tags = node.tags or [ ];
    deploy =
      if nixos == null then
        { }
      else
        {
          rollout = nixos.rollout or "closure";
          install = nixos.install or null;
        };
  };
}
