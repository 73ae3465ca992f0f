# What `services.orch-node` promises.
{ lib, harness, ... }:

let
  inherit (harness) promise refused objected;

  with' = settings: {
    services.orch-node = {
      enable = true;
    }
    // settings;
  };
  pulling =
    settings:
    with' {
      pull = {
        enable = true;
      }
      // settings;
    };
  rollout = config: config.systemd.services.orch-node-rollout;
  pull = config: config.systemd.services.orch-node;
in
[
  (promise {
    name = "a node brings interrupted rollouts to their end at boot where nothing is said";
    given = with' { };
    holds =
      config:
      config.systemd.services ? orch-node-rollout
      && lib.hasSuffix "/bin/orch-node system boot" (rollout config).serviceConfig.ExecStart
      && (rollout config).wantedBy == [ "multi-user.target" ];
    unless = with' { rollout.enable = false; };
  })
  (promise {
    name = "no switch cuts off the unit that may be switching, and no boot waits for it";
    given = pulling { };
    holds =
      config:
      !(rollout config).restartIfChanged
      && (rollout config).serviceConfig.Type == "exec"
      && !(pull config).restartIfChanged
      && (pull config).serviceConfig.KillMode == "process"
      && (pull config).serviceConfig.Type == "exec";
    unless = pulling { interval = "15min"; };
  })
  (promise {
    name = "a node does not pull unless it is told to";
    given = with' { };
    holds =
      config:
      !(config.systemd.services ? orch-node)
      && config.systemd.timers == { }
      && config.systemd.paths == { };
    unless = pulling { };
  })
  (promise {
    name = "a node that pulls stays at the server, and begins when it is enrolled";
    given = pulling { };
    holds =
      config:
      lib.hasSuffix "/bin/orch-node run --limit 600 --health 60" (pull config).serviceConfig.ExecStart
      && (pull config).unitConfig.ConditionPathExists or null == "/var/lib/orch/enrolment.json"
      && config.systemd.paths.orch-node.pathConfig.PathChanged == "/var/lib/orch/enrolment.json"
      && config.systemd.timers == { };
    unless = pulling { interval = "15min"; };
  })
  (promise {
    name = "with an interval, a timer has the node fetch, and nothing runs in between";
    given = pulling { interval = "1h 30min"; };
    holds =
      config:
      config.systemd.timers.orch-node.timerConfig.OnUnitInactiveSec or null == "1h 30min"
      && (pull config).serviceConfig.Type == "oneshot"
      && lib.hasInfix "/bin/orch-node fetch " (pull config).serviceConfig.ExecStart
      && (pull config).wantedBy == [ ];
    unless = pulling { };
  })
  (promise {
    name = "an enrolment from a file is a credential, and does not wait for one from elsewhere";
    given = pulling { enrolmentFile = "/run/keys/enrolment"; };
    holds =
      config:
      (pull config).serviceConfig.LoadCredential or [ ] == [ "enrolment:/run/keys/enrolment" ]
      && !((pull config).unitConfig ? ConditionPathExists)
      && !lib.hasInfix "/run/keys" (pull config).serviceConfig.ExecStartPre;
    unless = pulling { };
  })
  (promise {
    name = "secrets that a node mounts are seen outside of its units";
    given = pulling { };
    holds =
      config:
      !lib.any (
        unit:
        lib.any (name: unit.serviceConfig ? ${name}) [
          "ProtectSystem"
          "PrivateTmp"
          "ProtectHome"
          "PrivateDevices"
        ]
      ) (lib.attrValues config.systemd.services);
    # The server's unit is one that would hide them.
    unless = {
      services.orchestrator.enable = true;
      services.orchestrator.site = "/srv/site";
    };
  })

  (refused {
    name = "an interval that is none is refused";
    wrong = pulling { interval = "often"; };
    right = pulling { interval = "90s"; };
  })
  (refused {
    name = "an enrolment as a Nix path, which would be copied to the store, is refused";
    wrong = pulling { enrolmentFile = ./site/id_ed25519; };
    right = pulling { enrolmentFile = "/run/keys/enrolment"; };
  })
  (refused {
    name = "no time at all for an apply is refused";
    wrong = pulling { applyLimit = 0; };
    right = pulling { applyLimit = 60; };
  })

  (objected {
    name = "an enrolment for a node that does not pull is refused";
    wrong = with' { pull.enrolmentFile = "/run/keys/enrolment"; };
    right = pulling { enrolmentFile = "/run/keys/enrolment"; };
    remedy = "pull.enable = true";
  })
  (objected {
    name = "an interval for a node that does not pull is refused";
    wrong = with' { pull.interval = "15min"; };
    right = pulling { interval = "15min"; };
    remedy = "pull.enable = true";
  })
  (objected {
    name = "health that may take longer than all of it is refused";
    wrong = pulling { healthLimit = 601; };
    right = pulling { healthLimit = 600; };
    remedy = "Raise services.orch-node.pull.applyLimit";
  })
]
