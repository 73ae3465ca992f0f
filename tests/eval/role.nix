# A spec that says everything, for the tests of what a spec means on NixOS.
{
  nixpkgs,
  lib,
  library,
  ...
}:

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
    packages = [
      "htop"
      "net-tools"
      "python3Packages.pip"
      "own-name"
    ];
    services = {
      enable = [
        "nginx"
        "chronyd.service"
        "worker"
        "nightly.timer"
      ];
      disable = [
        "rpcbind"
        "stranger"
      ];
    };
    hypervisor = null;
    files = [
      (file "/etc/motd" text)
      (
        file "/etc/app/app.conf" "x"
        // {
          owner = "ops";
          mode = "0664";
        }
      )
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

  node =
    more: module:
    (orch.evaluate {
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

  full = node { } { };
  # The same node, of which everything is otherwise that can be.
  other =
    (node {
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
    } { }).config;
  # The same, with its interface named.
  named = (node { } { orch.network.interface = "eth0"; }).config;
in
{
  inherit
    role
    node
    key
    text
    file
    full
    other
    named
    ;
}
