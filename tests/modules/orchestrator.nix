# What `services.orchestrator` promises.
{ lib, harness, ... }:

let
  inherit (harness) promise refused objected;

  with' = settings: {
    services.orchestrator = {
      enable = true;
      site = "/srv/site";
    }
    // settings;
  };
  service = config: config.systemd.services.orchestrator;
  confined = config: (service config).serviceConfig;
  credentials = config: (confined config).LoadCredential;
  said = value: builtins.toJSON (removeAttrs value [ "environment" ]);
in
[
  (promise {
    name = "nothing is there unless it is asked for";
    given = { };
    holds =
      config:
      config.systemd.services == { } && config.users.users == { } && config.environment.etc == { };
    unless = with' { };
  })
  (promise {
    name = "the server listens on loopback alone where nothing is said";
    given = with' { };
    holds = config: config.systemd.sockets.orchestrator.listenStreams == [ "127.0.0.1:44443" ];
    unless = with' { listen = [ "0.0.0.0:44443" ]; };
  })
  (promise {
    name = "the server has a user of its own and its state for itself";
    given = with' { };
    holds =
      config:
      (confined config).User == "orchestrator"
      && (confined config).StateDirectoryMode == "0700"
      && (confined config).UMask == "0077"
      && config.users.users.orchestrator.isSystemUser;
    unless = with' { user = "root"; };
  })
  (promise {
    name = "a user that exists already is not made";
    given = with' {
      user = "alice";
      group = "users";
    };
    holds = config: config.users.users == { } && config.users.groups == { };
    unless = with' { };
  })
  (promise {
    name = "hardening is on by default, and complete";
    given = with' { };
    holds =
      config:
      let
        has = name: value: (confined config).${name} or null == value;
      in
      has "ProtectSystem" "strict"
      && has "CapabilityBoundingSet" ""
      && has "ProtectHome" true
      && lib.all (name: has name true) [
        "LockPersonality"
        "MemoryDenyWriteExecute"
        "NoNewPrivileges"
        "PrivateDevices"
        "PrivateTmp"
        "ProtectClock"
        "ProtectControlGroups"
        "ProtectHostname"
        "ProtectKernelLogs"
        "ProtectKernelModules"
        "ProtectKernelTunables"
        "RestrictNamespaces"
        "RestrictRealtime"
        "RestrictSUIDSGID"
      ];
    unless = with' { hardening = false; };
  })
  (promise {
    name = "a site below a home can be read, and not written";
    given = with' { site = "/home/alice/site"; };
    holds = config: (confined config).ProtectHome == "read-only";
    unless = with' { site = "/srv/home/site"; };
  })
  (promise {
    name = "the firewall is opened on the interface asked for, for the ports listened to, and nowhere else";
    given = with' {
      listen = [
        "10.0.12.1:44443"
        "[fd00::1]:44444"
        "10.0.13.1:44443"
      ];
      firewallInterfaces = [ "vmbr0" ];
    };
    holds =
      config:
      config.networking.firewall.interfaces == {
        vmbr0.allowedTCPPorts = [
          44443
          44444
        ];
      }
      && config.networking.firewall.allowedTCPPorts == [ ];
    unless = with' { listen = [ "10.0.12.1:44443" ]; };
  })
  (promise {
    name = "secrets are credentials, and their files stand nowhere else";
    given = with' {
      ageIdentityFile = "/keys/age";
      sshIdentityFile = "/keys/ssh";
    };
    holds =
      config:
      credentials config == [
        "age-identity:/keys/age"
        "ssh-identity:/keys/ssh"
      ]
      && (service config).environment.SOPS_AGE_KEY_FILE == "%d/age-identity"
      && !lib.hasInfix "/keys/" (said (removeAttrs (confined config) [ "LoadCredential" ]))
      && !lib.hasInfix "/keys/" (builtins.toJSON (service config).environment);
    unless = with' { };
  })
  (promise {
    name = "whoever listens everywhere without a firewall is warned";
    given = with' { listen = [ "44443" ]; } // {
      networking.firewall.enable = false;
    };
    holds = config: lib.any (lib.hasInfix "firewallInterfaces") config.warnings;
    unless = with' { listen = [ "44443" ]; };
  })
  (refused {
    name = "an address that is none is refused";
    wrong = with' { listen = [ "everywhere:44443" ]; };
    right = with' { listen = [ "[::1]:44443" ]; };
  })
  (refused {
    name = "a port that is none is refused";
    wrong = with' { listen = [ "10.0.12.1:65536" ]; };
    right = with' { listen = [ "10.0.12.1:65535" ]; };
  })
  (refused {
    name = "a file name that would be another line of the unit is refused";
    wrong = with' { ageIdentityFile = "/keys/age\nExecStartPre=/bin/sh"; };
    right = with' { ageIdentityFile = "/keys/age-ExecStartPre=/bin/sh"; };
  })
  (refused {
    name = "more connections than the program takes are refused";
    wrong = with' { connections = 100001; };
    right = with' { connections = 100000; };
  })
  (refused {
    name = "a secret as a Nix path, which would be copied to the store, is refused";
    wrong = with' { ageIdentityFile = ./site/id_ed25519; };
    right = with' { ageIdentityFile = "/srv/site/id_ed25519"; };
  })
  (refused {
    name = "a secret that is in the store already is refused";
    wrong = with' { sshIdentityFile = "${builtins.storeDir}/00000000000000000000000000000000-key"; };
    right = with' { sshIdentityFile = "/etc/ssh/ssh_host_ed25519_key"; };
  })
  (refused {
    name = "a user name that could be more than a name is refused";
    wrong = with' { user = "root\nExecStartPre=/bin/sh"; };
    right = with' { user = "provisioner"; };
  })
  (refused {
    name = "a state directory that leads elsewhere is refused";
    wrong = with' { stateDirectory = "../../etc"; };
    right = with' { stateDirectory = "orch-server"; };
  })
  (refused {
    name = "a log format that there is not is refused";
    wrong = with' { logFormat = "xml"; };
    right = with' { logFormat = "json"; };
  })
  (refused {
    name = "a misspelt option is refused";
    wrong = with' { listn = [ ]; };
    right = with' { };
  })
  (refused {
    name = "a site has to be named";
    wrong.services.orchestrator.enable = true;
    right = with' { };
  })
  (objected {
    name = "a server that listens nowhere is refused";
    wrong = with' { listen = [ ]; };
    right = with' { };
    remedy = "Name an address";
  })
  (objected {
    name = "a firewall opened for a server on loopback is refused";
    wrong = with' { firewallInterfaces = [ "vmbr0" ]; };
    right = with' {
      firewallInterfaces = [ "vmbr0" ];
      listen = [ "10.0.12.1:44443" ];
    };
    remedy = "services.orchestrator.listen = [";
  })
]
