# What a spec means on NixOS, property by property, with the real module system.
{ nixpkgs, lib, library, ... }:

let
  orch = import library { inherit lib; };

  # As orch resolves a spec that says everything.
  role = {
    hostname = "web";
    domain = "example.org";
    network.static = {
      ip = "10.0.0.5/24";
      gateway = "10.0.0.1";
      dns = [ "10.0.0.2" ];
    };
    timezone = "Europe/Berlin";
    users = [
      {
        name = "ops";
        sudo = true;
        ssh_keys = [ key ];
      }
      {
        name = "deploy";
        sudo = false;
        ssh_keys = [ ];
      }
      {
        name = "root";
        sudo = true;
        ssh_keys = [ key ];
      }
    ];
    ssh = {
      port = 2222;
      permit_root_login = "prohibit-password";
      password_authentication = "no";
    };
    sudo_nopasswd = true;
    fail2ban = true;
    packages = [ "htop" "net-tools" "python3Packages.pip" "own-name" ];
    services = {
      enable = [ "nginx" "chronyd.service" "worker" "nightly.timer" ];
      disable = [ "rpcbind" "stranger" ];
    };
    hypervisor = null;
    files = [
      (file "/etc/motd" text)
      (file "/etc/app/app.conf" "x" // { owner = "ops"; mode = "0664"; })
      (file "/srv/a b/100%" text // { owner = "ops"; })
    ];
    secrets = [
      {
        name = "key";
        from = "secret:key";
        path = "/run/secrets/key";
        mode = "0400";
        owner = "root";
      }
    ];
    nixos = {
      modules = [ ];
      rollout = "nixos-rebuild";
      install = null;
    };
    health = [ { tcp = 22; } ];
    config.free = [ "kept" ];
  };
  key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE ops";
  text = " \${x} '' \" \\ %h\n\ttail ";
  file = path: content: {
    inherit path content;
    mode = "0644";
    owner = "root";
  };

  # What every machine needs and no spec says.
  machine = {
    boot.loader.grub.device = "nodev";
    fileSystems."/" = {
      device = "/dev/disk/by-label/root";
      fsType = "ext4";
    };
    system.stateVersion = "21.05";
    # Units that a module of the node brings.
    systemd.services.worker.script = "true";
    systemd.services.nightly.script = "true";
    systemd.timers.nightly.timerConfig.OnCalendar = "daily";
    orch.packageNames.own-name = "hello";
  };

  node = more: module: (orch.evaluate {
    site = ./site;
    inherit nixpkgs;
    modules = [
      machine
      module
    ];
    nodes."m.web@h" = {
      name = "web";
      platform = "x86_64-linux";
      tags = [ "front" ];
      config = role // more;
    };
  })."m.web@h";

  inherit (node { } { }) config toplevel deploy health secrets tags;
  other = (node {
    network = "dhcp";
    domain = null;
    fail2ban = false;
    sudo_nopasswd = false;
    ssh = role.ssh // {
      port = 22;
      permit_root_login = "no";
      password_authentication = "yes";
    };
    services = { };
    files = [ ];
  } { orch.network.interface = "eth0"; }).config;
  named = (node { } { orch.network.interface = "eth0"; }).config;

  drv = more: module: (node more module).toplevel.drvPath;
  # Less than a whole system, for what is refused long before there is one.
  installed = packages: map (package: package.name) (node { inherit packages; } { }).config.environment.systemPackages;
  written = files: (node { inherit files; } { }).config.environment.etc.x.text;
  packages = map lib.getName config.environment.systemPackages;
  isNew = config.services.openssh ? settings;
  ssh = config: if isNew then
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
  rulesFor = config: user: builtins.filter (rule: builtins.elem user rule.users) config.security.sudo.extraRules;
  commandsOf = config: user: lib.concatMap (rule: rule.commands) (rulesFor config user);
  network = config: config.systemd.network.networks."10-orch";
  ours = builtins.filter (lib.hasPrefix "f+ ") config.systemd.tmpfiles.rules;
in
{
  tests = {
    "it comes to a derivation" = {
      is = lib.hasSuffix ".drv" toplevel.drvPath;
      wanted = true;
    };
    "hostname, domain" = {
      is = [ config.networking.hostName config.networking.domain other.networking.domain ];
      wanted = [ "web" "example.org" null ];
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
      is = with network config; { inherit matchConfig address gateway dns; };
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
      is = [ config.networking.useDHCP config.networking.useNetworkd config.systemd.network.enable ];
      wanted = [ false true true ];
    };
    "network: dhcp" = {
      is = [ other.networking.useDHCP (other.systemd.network.networks ? "10-orch") ];
      wanted = [ true false ];
    };
    "users: accounts are made, with their keys" = {
      is = map (user: with config.users.users.${user}; [ isNormalUser openssh.authorizedKeys.keys ]) [ "ops" "deploy" ];
      wanted = [ [ true [ key ] ] [ true [ ] ] ];
    };
    "users: root gets its keys and stays root" = {
      is = with config.users.users.root; [ isNormalUser uid openssh.authorizedKeys.keys ];
      wanted = [ false 0 [ key ] ];
    };
    "sudo: whoever may use it may use all of it" = {
      is = map (commandsOf config) [ "ops" "deploy" ];
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
      is = [ config.services.openssh.enable config.services.openssh.ports other.services.openssh.ports ];
      wanted = [ true [ 2222 ] [ 22 ] ];
    };
    "ssh: who may log in, and how" = {
      is = map ssh [ config other ];
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
      is = [ config.services.fail2ban.enable other.services.fail2ban.enable ];
      wanted = [ true false ];
    };
    "fail2ban: a module may want it where the spec does not" = {
      is = (node { fail2ban = false; } { services.fail2ban.enable = true; }).config.services.fail2ban.enable;
      wanted = true;
    };
    "packages: by their name, by Debian's, inside of a set, by the site's own" = {
      is = map (name: builtins.any (lib.hasInfix name) packages) [ "htop" "net-tools" "pip" "hello" ];
      wanted = [ true true true true ];
    };
    "services: those with an option of their own" = {
      is = [ config.services.nginx.enable config.services.chrony.enable config.services.rpcbind.enable ];
      wanted = [ true true false ];
    };
    "services: units that a module defines are wanted at boot" = {
      is = [ config.systemd.services.worker.wantedBy config.systemd.timers.nightly.wantedBy ];
      wanted = [ [ "multi-user.target" ] [ "timers.target" ] ];
    };
    "services: one that is not to run cannot" = {
      is = config.systemd.services.stranger.enable;
      wanted = false;
    };
    "services: those that are not named are left alone" = {
      is = [ other.services.nginx.enable (other.systemd.services.worker.wantedBy) ];
      wanted = [ false [ ] ];
    };
    "files: below /etc, to the letter" = {
      is = with config.environment.etc.motd; [ text mode user group ];
      wanted = [ text "0644" "root" "root" ];
    };
    "files: mode, owner and the owner's group" = {
      is = with config.environment.etc."app/app.conf"; [ mode user group ];
      wanted = [ "0664" "ops" config.users.users.ops.group ];
    };
    "files: elsewhere, by systemd, to the letter" = {
      is = ours;
      wanted = [
        "f+ \"/srv/a b/100%%\" 0644 ops ${config.users.users.ops.group} - \\x20\${x}\\x20''\\x20\"\\x20\\\\\\x20%%h\\n\\ttail\\x20"
      ];
    };
    "health, secrets and tags are told" = {
      is = { inherit health tags; secret = map (secret: { inherit (secret) name path mode; }) secrets; };
      wanted = {
        health = [ { tcp = 22; } ];
        tags = [ "front" ];
        secret = [
          {
            name = "key";
            path = "/run/secrets/key";
            mode = "0400";
          }
        ];
      };
    };
    "health: a module adds its own" = {
      is = (node { } { orch.health = [ { unit = "nginx.service"; } ]; }).health;
      wanted = [ { unit = "nginx.service"; } { tcp = 22; } ];
    };
    "deploy settings are told" = {
      is = deploy;
      wanted = {
        rollout = "nixos-rebuild";
        install = null;
      };
    };
    "free keys reach modules" = {
      is = config.orch.node.config.config.free;
      wanted = [ "kept" ];
    };
    "hypervisor: with a module that brings it" = {
      is = (node { hypervisor = "proxmox"; } {
        options.services.proxmox-ve.enable = lib.mkOption { type = lib.types.bool; default = false; };
      }).config.services.proxmox-ve.enable;
      wanted = true;
    };
    "every field of the resolved configuration is mapped or known not to be" = {
      # As the model serialises a role; a new field must be thought of here.
      is = builtins.attrNames role;
      wanted = [
        "config" "domain" "fail2ban" "files" "health" "hostname" "hypervisor" "network" "nixos" "packages"
        "secrets" "services" "ssh" "sudo_nopasswd" "timezone" "users"
      ];
    };
  };

  refusals = {
    "a module that contradicts the spec" = {
      value = (node { } { networking.hostName = "other"; }).config.networking.hostName;
      words = "networking.hostName' has conflicting definition values";
    };
    "a package that there is not" = {
      value = installed [ "no-such-thing" ];
      words = "package `no-such-thing` is not in this nixpkgs: say what it is called there in `orch.packageNames`";
    };
    "a package that is spelled otherwise" = {
      value = installed [ "h-top" ];
      words = "package `h-top` is not in this nixpkgs: did you mean `htop`?";
    };
    "a package of a version" = {
      value = installed [ "vim=2:9.0" ];
      words = "package `vim=2:9.0` asks for a version or an architecture";
    };
    "a package that is a set of packages" = {
      value = installed [ "python3Packages" ];
      words = "package `python3Packages` is something else in nixpkgs";
    };
    "a service that nobody knows" = {
      value = drv { services.enable = [ "nobody" ]; } { };
      words = "orch: service `nobody` is to run, but NixOS has no option `services.nobody.enable`, and no module of the node defines that unit. Have one define or switch it.";
    };
    "a unit that is no service" = {
      value = (node { services.enable = [ "data.mount" ]; } { }).config.systemd.services.worker.wantedBy;
      words = "unit `data.mount` cannot be switched by a spec on NixOS";
    };
    "a file that only some may read" = {
      value = written [ (file "/etc/x" "hunter2" // { mode = "0600"; }) ];
      words = "file `/etc/x` has mode 0600, but on NixOS its content could be read in the store by everybody: make it one of `secrets`";
      without = "hunter2";
    };
    "a file that another part of the spec writes" = {
      value = written [ (file "/etc/hostname" "x") ];
      words = "file `/etc/hostname` is written from `identity` of the spec";
    };
    "a file in the store" = {
      value = written [ (file "/nix/store/x" "x") ];
      words = "file `/nix/store/x` cannot be written on NixOS: what is there is Nix's own";
    };
    "a file of somebody who is nobody" = {
      value = (node { files = [ (file "/etc/x" "x" // { owner = "ghost"; }) ]; } { }).config.environment.etc.x.group;
      words = "`ghost` is to own a file, and is no user of this system";
    };
    "a hypervisor without a module that brings it" = {
      value = (node { hypervisor = "proxmox"; } { }).config.networking.hostName;
      words = "hypervisor `proxmox` is not part of NixOS";
    };
    "a health check that is none" = {
      value = (node { } { orch.health = [ { ping = 1; } ]; }).health;
      words = "health check (exactly one of tcp, http, unit and command)";
    };
    "a literal secret in a module" = {
      value = (node { } { orch.secrets = [ { name = "x"; path = "/run/x"; from = "hunter2"; } ]; }).secrets;
      words = "never written here";
      without = "hunter2";
    };
  };
}
