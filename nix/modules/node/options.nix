# What can be said about a node, and what holds where nothing is said.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  inherit (lib)
    literalExpression
    mkEnableOption
    mkOption
    types
    ;

  cfg = config.services.orch-node;

  inherit (import ../types.nix { inherit lib; }) secretFile timeSpan;
in
{
  options.services.orch-node = {
    enable = mkEnableOption "the node's side of orch: finishing rollouts after a reboot, and fetching its configuration";

    package = mkOption {
      type = types.package;
      default = pkgs.callPackage ../../package.nix { program = "orch-node"; };
      defaultText = literalExpression "orch.packages.\${system}.orch-node";
      example = literalExpression "pkgs.orch-node-static";
      description = "The package that `orch-node` is taken from.";
    };

    rollout.enable = mkOption {
      type = types.bool;
      default = true;
      example = false;
      description = ''
        Whether a rollout that a reboot interrupted is brought to its end at boot: the system before it is what the node
        stays on, or, where the reboot was part of it, a confirmation is waited for again. Without this it waits until
        orch asks for the node the next time.
      '';
    };

    pull = {
      enable = mkOption {
        type = types.bool;
        default = false;
        example = true;
        description = ''
          Whether this node fetches its configuration from the server of its site. It begins when it has been enrolled,
          which is when `/var/lib/orch/enrolment.json` is there.
        '';
      };

      enrolmentFile = mkOption {
        type = types.nullOr secretFile;
        default = null;
        example = "/run/keys/enrolment.json";
        description = ''
          A file with the server's address, the certificate to pin and the first token, which is put in place before the
          first fetch. The same file again changes nothing; another one enrols the node anew. Without it, whoever makes the
          machine puts it there.
        '';
      };

      interval = mkOption {
        type = types.nullOr timeSpan;
        default = null;
        example = "15min";
        description = ''
          With a time span, a timer has the node fetch so long after the last time, up to half a minute later, and nothing runs in
          between. Without one, it stays at the server and hears of news at once; how often it looks by itself is then what its spec says
          (`run: { interval: 15m }`).
        '';
      };

      applyLimit = mkOption {
        type = types.ints.between 1 86400;
        default = 600;
        example = 1800;
        description = "How many seconds one configuration may take to be applied.";
      };

      healthLimit = mkOption {
        type = types.ints.between 1 86400;
        default = 60;
        example = 120;
        description = "How many of these seconds the node may take to become healthy.";
      };
    };
  };

  config = lib.mkIf cfg.enable {
    # The driver finds it at `/run/current-system/sw/bin/orch-node`, as people do.
    environment.systemPackages = [ cfg.package ];
  };
}
