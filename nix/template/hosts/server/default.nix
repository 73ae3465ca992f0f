# The NixOS of `server`.
{ lib, ... }:

{
  nixpkgs.hostPlatform = lib.mkDefault "x86_64-linux";
  system.stateVersion = "26.05";
  networking.hostName = "server";

  boot.loader.systemd-boot.enable = true;
  fileSystems."/" = {
    device = "/dev/disk/by-label/nixos";
    fsType = "ext4";
  };
  fileSystems."/boot" = {
    device = "/dev/disk/by-label/boot";
    fsType = "vfat";
  };

  # orch speaks to it as root, with keys alone.
  services.openssh = {
    enable = true;
    settings.PermitRootLogin = "prohibit-password";
    settings.PasswordAuthentication = false;
  };
  # users.users.root.openssh.authorizedKeys.keys = [ "ssh-ed25519 AAAA... alice@laptop" ];

  # What must hold after a rollout; where it does not, the machine goes back to the system before.
  orch.health = [ { tcp = 22; } ];
}
