# What orch tells a node's modules, and what they can tell orch: `config.orch`.
{ lib, ... }:

let
  inherit (lib) mkOption types;
  orch = import ./types.nix { inherit lib; };

  secret.options = {
    name = mkOption {
      type = orch.keyName;
      description = "What it is called.";
    };
    from = mkOption {
      type = types.nullOr orch.secretRef;
      default = null;
      description = "Where its value is kept: a mention, never the value.";
    };
    path = mkOption {
      type = orch.nodePath;
      description = "Where it appears, in memory.";
    };
    mode = mkOption {
      type = orch.fileMode;
      default = "0400";
      description = "Its permission bits.";
    };
    owner = mkOption {
      type = orch.userName;
      default = "root";
      description = "Who owns it.";
    };
  };
in
{
  options.orch = {
    node = mkOption {
      type = types.attrs;
      readOnly = true;
      description = "Who this node is, and the whole of its resolved configuration: `identity`, `name`, `kind`, `tags`, `config`.";
      example = {
        identity = "site.web@father";
        name = "web";
        kind = "node";
        tags = [ ];
        config = { };
      };
    };

    health = mkOption {
      type = types.listOf orch.health;
      default = [ ];
      description = "What must hold for the node to count as healthy: each is one of `tcp`, `http`, `unit` and `command`.";
      example = [
        { tcp = 22; }
        { unit = "nginx.service"; }
      ];
    };

    secrets = mkOption {
      type = types.listOf (types.submodule secret);
      default = [ ];
      description = "Secrets that the node is given as files in memory, by name and never by value.";
      example = [
        {
          name = "web-tls-key";
          path = "/run/secrets/web-tls-key";
        }
      ];
    };

    tags = mkOption {
      type = types.listOf orch.tag;
      default = [ ];
      description = "Words that group nodes.";
      example = [ "web" ];
    };

    deploy = {
      rollout = mkOption {
        type = types.enum [
          "closure"
          "nixos-rebuild"
        ];
        default = "closure";
        description = "How a new system reaches the node.";
      };
      install = mkOption {
        type = types.nullOr (types.enum [ "nixos-anywhere" ]);
        default = null;
        description = "How a machine without NixOS gets it, where it should.";
      };
    };

    network.interface = mkOption {
      type = types.nullOr types.str;
      default = null;
      description = "The interface that has the spec's fixed address; every real network card where this is null.";
      example = "eth0";
    };

    packageNames = mkOption {
      type = types.attrsOf types.str;
      default = { };
      description = "What nixpkgs calls packages that specs name otherwise.";
      example = {
        "postgresql-client" = "postgresql";
      };
    };
  };
}
