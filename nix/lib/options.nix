# What orch tells a node's modules, and what they can tell orch: `config.orch`.
{ lib, ... }:

let
  inherit (lib) mkOption types;
in
{
  options.orch = {
    node = mkOption {
      type = types.attrs;
      readOnly = true;
      description = "Who this node is, and the whole of its resolved configuration: `identity`, `name`, `kind`, `tags`, `config`.";
      example = lib.literalExpression ''{ identity = "site.web@father"; name = "web"; kind = "node"; tags = [ ]; config = { }; }'';
    };

    health = mkOption {
      type = types.listOf types.attrs;
      default = [ ];
      description = "What must hold for the node to count as healthy: each is one of `tcp`, `http`, `unit` and `command`.";
      example = [ { tcp = 22; } ];
    };

    secrets = mkOption {
      type = types.listOf types.attrs;
      default = [ ];
      description = "Secrets that the node is given as files in memory, by name and never by value.";
    };

    tags = mkOption {
      type = types.listOf types.str;
      default = [ ];
      description = "Words that group nodes.";
      example = [ "web" ];
    };

    deploy = mkOption {
      type = types.attrs;
      default = { };
      description = "How a new system reaches the node: `rollout` and `install`, as the spec says them.";
    };
  };
}
