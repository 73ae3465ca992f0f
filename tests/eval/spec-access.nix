# What a spec means on NixOS, property by property: who the node is, where it is, and who gets in.
{
  nixpkgs,
  lib,
  library,
  ...
}:

let
  fixture = import ./role.nix { inherit nixpkgs lib library; };
  inherit (fixture)
    node
    key
    other
    named
    ;
  inherit (fixture.full) config;

  isNew = config.services.openssh ? settings;
  ssh =
    config:
    if isNew then
      {
        root = config.services.openssh.settings.PermitRootLogin;
        password = config.services.openssh.settings.PasswordAuthentication;
        interactive = config.services.openssh.settings.KbdInteractiveAuthentication;
      }
    else
      {
        root = config.services.openssh.permitRootLogin;
        password = config.services.openssh.passwordAuthentication;
        interactive = config.services.openssh.challengeResponseAuthentication;
      };
  rulesFor =
    config: user: builtins.filter (rule: builtins.elem user rule.users) config.security.sudo.extraRules;
  commandsOf = config: user: lib.concatMap (rule: rule.commands) (rulesFor config user);
  network = config: config.systemd.network.networks."10-orch";
in
{
  tests = {
    "hostname, domain" = {
      is = [
        config.networking.hostName
        config.networking.domain
        other.networking.domain
      ];
      wanted = [
        "web"
        "example.org"
        null
      ];
    };
    "timezone" = {
      is = config.time.timeZone;
      wanted = "Europe/Berlin";
    };
    "timezone: a module's word counts" = {
      is = (node { } { time.timeZone = "UTC"; }).config.time.timeZone;
      wanted = "UTC";
    };
    "network: a fixed address, on every real card" = {
      is = with network config; {
        inherit
          matchConfig
          address
          gateway
          dns
          ;
      };
      wanted = {
        matchConfig = {
          Type = "ether";
          Kind = "!*";
        };
        address = [ "10.0.0.5/24" ];
        gateway = [ "10.0.0.1" ];
        dns = [ "10.0.0.2" ];
      };
    };
    "network: a fixed address, on the interface that a module names" = {
      is = (network named).matchConfig;
      wanted.Name = "eth0";
    };
    "network: a fixed address is not asked for besides" = {
      is = [
        config.networking.useDHCP
        config.networking.useNetworkd
        config.systemd.network.enable
      ];
      wanted = [
        false
        true
        true
      ];
    };
    "network: dhcp" = {
      is = [
        other.networking.useDHCP
        (other.systemd.network.networks ? "10-orch")
      ];
      wanted = [
        true
        false
      ];
    };
    "users: accounts are made, with their keys" = {
      is =
        map
          (
            user: with config.users.users.${user}; [
              isNormalUser
              openssh.authorizedKeys.keys
            ]
          )
          [
            "ops"
            "deploy"
          ];
      wanted = [
        [
          true
          [ key ]
        ]
        [
          true
          [ ]
        ]
      ];
    };
    "users: root gets its keys and stays root" = {
      is = with config.users.users.root; [
        isNormalUser
        uid
        openssh.authorizedKeys.keys
      ];
      wanted = [
        false
        0
        [ key ]
      ];
    };
    "sudo: whoever may use it may use all of it" = {
      is = map (commandsOf config) [
        "ops"
        "deploy"
      ];
      wanted = [
        [
          {
            command = "ALL";
            options = [ "NOPASSWD" ];
          }
        ]
        [ ]
      ];
    };
    "sudo_nopasswd: without it a password is asked for" = {
      is = map (command: command.options) (commandsOf other "ops");
      wanted = [ [ ] ];
    };
    "sudo: nobody gets a group for it" = {
      is = config.users.users.ops.extraGroups;
      wanted = [ ];
    };
    "ssh: the port, and no other" = {
      is = [
        config.services.openssh.enable
        config.services.openssh.ports
        other.services.openssh.ports
      ];
      wanted = [
        true
        [ 2222 ]
        [ 22 ]
      ];
    };
    "ssh: who may log in, and how" = {
      is = map ssh [
        config
        other
      ];
      wanted = [
        {
          root = "prohibit-password";
          password = false;
          interactive = false;
        }
        {
          root = "no";
          password = true;
          interactive = false;
        }
      ];
    };
    "ssh: the port is open in the firewall" = {
      is = builtins.elem 2222 config.networking.firewall.allowedTCPPorts;
      wanted = true;
    };
    "fail2ban" = {
      is = [
        config.services.fail2ban.enable
        other.services.fail2ban.enable
      ];
      wanted = [
        true
        false
      ];
    };
    "fail2ban: a module may want it where the spec does not" = {
      is =
        (node { fail2ban = false; } { services.fail2ban.enable = true; }).config.services.fail2ban.enable;
      wanted = true;
    };
  };

  refusals = {
    "a module that contradicts the spec" = {
      value = (node { } { networking.hostName = "other"; }).config.networking.hostName;
      words = "networking.hostName' has conflicting definition values";
    };
  };
}
