# The units: a socket that outlives the server, and the server with as few rights as it can do with.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  inherit (lib) mkIf optional optionalAttrs;

  cfg = config.services.orchestrator;

  inherit (import ../types.nix { inherit lib; }) portOf;

  isInHome = lib.any (folder: lib.hasPrefix folder "${toString cfg.site}/") [
    "/home/"
    "/root/"
    "/run/user/"
  ];

  # No value of a secret stands here: systemd reads the files and shows them to the server in memory.
  credentials =
    optional (cfg.ageIdentityFile != null) "age-identity:${cfg.ageIdentityFile}"
    ++ optional (cfg.sshIdentityFile != null) "ssh-identity:${cfg.sshIdentityFile}";

  hardening = {
    AmbientCapabilities = "";
    CapabilityBoundingSet = "";
    DevicePolicy = "closed";
    KeyringMode = "private";
    LockPersonality = true;
    MemoryDenyWriteExecute = true;
    NoNewPrivileges = true;
    PrivateDevices = true;
    PrivateTmp = true;
    # Relaxed: root of this machine may ask what an operator asks, and is known by its uid, which it would not have here.
    PrivateUsers = false;
    ProcSubset = "pid";
    ProtectClock = true;
    ProtectControlGroups = true;
    # Relaxed for a site below a home, which has to be read; it still cannot be written.
    ProtectHome = if isInHome then "read-only" else true;
    ProtectHostname = true;
    ProtectKernelLogs = true;
    ProtectKernelModules = true;
    ProtectKernelTunables = true;
    ProtectProc = "invisible";
    ProtectSystem = "strict";
    RemoveIPC = true;
    # Besides the network: the operator's socket and the word to systemd.
    RestrictAddressFamilies = [
      "AF_INET"
      "AF_INET6"
      "AF_UNIX"
    ];
    RestrictNamespaces = true;
    RestrictRealtime = true;
    RestrictSUIDSGID = true;
    SystemCallArchitectures = "native";
    SystemCallErrorNumber = "EPERM";
    SystemCallFilter = [
      "@system-service"
      "~@privileged"
      "~@resources"
    ];
  };
in
{
  config = mkIf cfg.enable {
    users.users = optionalAttrs (cfg.user == "orchestrator") {
      orchestrator = {
        isSystemUser = true;
        inherit (cfg) group;
        home = "/var/lib/${cfg.stateDirectory}";
        description = "Server of orch";
      };
    };
    users.groups = optionalAttrs (cfg.group == "orchestrator") { orchestrator = { }; };

    systemd.sockets.orchestrator = {
      description = "Where nodes fetch their configuration";
      wantedBy = [ "sockets.target" ];
      listenStreams = cfg.listen;
      socketConfig = {
        # A bridge or a tunnel may come up after this, and its address with it.
        FreeBind = true;
        Backlog = 4096;
        NoDelay = true;
      };
    };

    systemd.services.orchestrator = {
      description = "Hands nodes their configuration";
      documentation = [ "man:orch-serve(1)" ];
      # Not only when somebody connects: it tells nodes that wait of news, and has to see the site for that.
      wantedBy = [ "multi-user.target" ];
      requires = [ "orchestrator.socket" ];
      after = [
        "network.target"
        "orchestrator.socket"
      ];

      environment = {
        ORCH_SITE = "${cfg.servedSite}";
        ORCH_STATE = "/var/lib/${cfg.stateDirectory}";
      }
      // optionalAttrs (cfg.ageIdentityFile != null) { SOPS_AGE_KEY_FILE = "%d/age-identity"; }
      // optionalAttrs (cfg.sshIdentityFile != null) {
        SOPS_AGE_SSH_PRIVATE_KEY_FILE = "%d/ssh-identity";
      };

      serviceConfig = {
        Type = "notify";
        ExecStart = "${lib.getExe' cfg.package "orch"} serve --connections ${toString cfg.connections} --log-format ${cfg.logFormat}";
        # Reads the site, keys and certificates anew; what makes no sense is not taken over. New credentials need a restart.
        ExecReload = "${lib.getExe' pkgs.coreutils "kill"} -HUP $MAINPID";
        Restart = "on-failure";
        RestartSec = 5;
        User = cfg.user;
        Group = cfg.group;
        StateDirectory = cfg.stateDirectory;
        StateDirectoryMode = "0700";
        UMask = "0077";
        # Each connection is one, and what is served and written down needs a few.
        LimitNOFILE = cfg.connections * 2 + 1024;
        LoadCredential = credentials;
      }
      // optionalAttrs cfg.hardening hardening;
    };

    networking.firewall.interfaces = lib.genAttrs cfg.firewallInterfaces (_: {
      allowedTCPPorts = lib.unique (map portOf cfg.listen);
    });
  };
}
