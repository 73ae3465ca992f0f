# This computer as NixOS: where the machines of `provider: local` live; `hosts/father.yaml` says what it is as a host. It evaluates as it is
# (`nixosConfigurations.father`). `orch rollout -H father` refuses it until that file says how yours is reached, and by which key it is known:
#   ssh: { address: 192.0.2.10, host_keys: ["ssh-ed25519 AAAA… of /etc/ssh/ssh_host_ed25519_key.pub"] }
# Disks, and the public keys below, have to be yours as well.
{ lib, ... }:

let
  # The keys that site.yaml gives to every user. They stand here once more because YAML is orch's to read, not Nix's.
  keys = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKXbCBlW8b0lPAbv8JhxHjPzA5Jtu7Rk9vJ1X5mT8m1A alice@laptop"
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH4mN0c1sYyq2v0gqC8u3wJk5Ck6dJzU0E9xYb2rP7Qd bob@desk"
  ];
in
{
  imports = [
    # In a site of your own: `orch.nixosModules.node` of the flake's input.
    ../../nix/modules/node
    ../../nix/modules/orchestrator
  ];

  nixpkgs.hostPlatform = lib.mkDefault "x86_64-linux";
  system.stateVersion = "26.05";

  networking = {
    hostName = "father";
    domain = "home.example";
  };
  time.timeZone = "Europe/Berlin";

  boot.loader.systemd-boot.enable = true;
  boot.loader.efi.canTouchEfiVariables = true;
  fileSystems = {
    "/" = {
      device = "/dev/disk/by-label/nixos";
      fsType = "ext4";
    };
    "/boot" = {
      device = "/dev/disk/by-label/boot";
      fsType = "vfat";
    };
  };

  # orch speaks to it as root, with keys alone.
  services.openssh = {
    enable = true;
    settings = {
      PermitRootLogin = "prohibit-password";
      PasswordAuthentication = false;
    };
  };
  users.users.root.openssh.authorizedKeys.keys = keys;

  # A rollout that a reboot interrupts ends on the system before it.
  services.orch-node.enable = true;

  # Where nodes that pull fetch their configuration. For nodes elsewhere, `listen` has to name an address that they reach, and
  # `firewallInterfaces` the way there; `server_url` in their host's file is that address.
  services.orchestrator = {
    enable = true;
    site = ../..;
  };
}
