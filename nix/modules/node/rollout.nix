# After a reboot in the middle of a rollout: what is on disk of it is brought to its end.
{ config, lib, ... }:

let
  cfg = config.services.orch-node;
in
{
  config = lib.mkIf (cfg.enable && cfg.rollout.enable) {
    systemd.services.orch-node-rollout = {
      description = "Brings a rollout that a reboot interrupted to its end";
      wantedBy = [ "multi-user.target" ];
      after = [
        "local-fs.target"
        "nix-daemon.socket"
      ];
      unitConfig = {
        ConditionPathExists = "/var/lib/orch/rollout.json";
        # What fails again and again is left for whoever asks for the node next, with the reason in the log.
        StartLimitIntervalSec = 300;
        StartLimitBurst = 5;
      };
      # It may be the one that switches, and runs once for each boot.
      restartIfChanged = false;
      path = [ config.nix.package ];

      serviceConfig = {
        # Not `oneshot`: whoever switches starts the targets of the new system and waits for them, and they would wait for this.
        Type = "exec";
        ExecStart = "${lib.getExe' cfg.package "orch-node"} system boot";
        RemainAfterExit = true;
        Restart = "on-failure";
        RestartSec = 5;
        # The watcher that it may start is a unit of its own; what else it started ends its work.
        KillMode = "process";
        StateDirectory = "orch";
        StateDirectoryMode = "0700";
      }
      // import ./confinement.nix;
    };
  };
}
