# A node that fetches its configuration: always at the server, or now and then by a timer.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  inherit (lib) mkIf optionalAttrs;

  cfg = config.services.orch-node;
  inherit (cfg) pull;

  enrolment = "/var/lib/orch/enrolment.json";
  program = lib.getExe' cfg.package "orch-node";
  limits = "--limit ${toString pull.applyLimit} --health ${toString pull.healthLimit}";
  isTimed = pull.interval != null;

  staying = {
    Type = "exec";
    ExecStart = "${program} run ${limits}";
    Restart = "always";
    RestartSec = 5;
  };

  once = {
    Type = "oneshot";
    ExecStart = "${program} fetch ${limits}";
    # Five tries over two and a half minutes to reach the server, and then what the configuration may take.
    TimeoutStartSec = pull.applyLimit + 300;
  };
in
{
  config = mkIf (cfg.enable && pull.enable) {
    # The name is that of the unit which orch brings along elsewhere, so that there is one of them and not two.
    systemd.services.orch-node = {
      description = "Keeps this node as its configuration says";
      wants = [ "network-online.target" ];
      after = [ "network-online.target" ];
      wantedBy = lib.optional (!isTimed) "multi-user.target";
      unitConfig.ConditionPathExists = mkIf (pull.enrolmentFile == null) enrolment;
      # A switch may be this unit's own doing, and must not cut it off in the middle.
      restartIfChanged = false;
      # What it runs it looks for in the system, and Nix among it.
      path = [ config.nix.package ];

      serviceConfig = {
        ExecReload = "${program} converge ${limits}";
        # A worker that applies goes on when the unit is stopped: its configuration may be what stops the unit.
        KillMode = "process";
        StateDirectory = "orch";
        StateDirectoryMode = "0700";
      }
      // optionalAttrs (pull.enrolmentFile != null) {
        LoadCredential = [ "enrolment:${pull.enrolmentFile}" ];
        # Each start writes it anew; the program itself tells another enrolment from the one before.
        ExecStartPre = "${lib.getExe' pkgs.coreutils "install"} -m 0400 -o root -g root %d/enrolment ${enrolment}";
      }
      // import ./confinement.nix
      // (if isTimed then once else staying);
    };

    # Whoever enrols the node while it runs need not start anything.
    systemd.paths.orch-node = mkIf (pull.enrolmentFile == null && !isTimed) {
      description = "Has this node fetch as soon as it is enrolled";
      wantedBy = [ "multi-user.target" ];
      # Not `PathExists`, which would start the unit again at once when somebody stops it.
      pathConfig.PathChanged = enrolment;
    };

    systemd.timers.orch-node = mkIf isTimed {
      description = "When this node fetches its configuration";
      wantedBy = [ "timers.target" ];
      timerConfig = {
        OnBootSec = "1min";
        OnUnitInactiveSec = pull.interval;
        # A fleet that was switched on at once does not ask at once.
        RandomizedDelaySec = "30s";
      };
    };
  };
}
