# What the types cannot say, each with its remedy.
{ config, lib, ... }:

let
  cfg = config.services.orch-node;
in
{
  config = lib.mkIf cfg.enable {
    assertions = [
      {
        assertion = cfg.pull.enrolmentFile != null -> cfg.pull.enable;
        message = ''
          services.orch-node.pull.enrolmentFile names an enrolment, but this node does not pull.
          Set services.orch-node.pull.enable = true; or take the file away.
        '';
      }
      {
        assertion = cfg.pull.interval != null -> cfg.pull.enable;
        message = ''
          services.orch-node.pull.interval says how often to fetch, but this node does not pull.
          Set services.orch-node.pull.enable = true; or take the interval away.
        '';
      }
      {
        assertion = cfg.pull.healthLimit <= cfg.pull.applyLimit;
        message = ''
          services.orch-node.pull.healthLimit (${toString cfg.pull.healthLimit} s) is part of applyLimit (${toString cfg.pull.applyLimit} s), and cannot be longer.
          Raise services.orch-node.pull.applyLimit, or lower healthLimit.
        '';
      }
    ];
  };
}
