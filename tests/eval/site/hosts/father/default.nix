# A host that is NixOS itself.
{
  # The old name of it, which every NixOS has.
  nixpkgs.system = "x86_64-linux";
  boot.loader.grub.device = "nodev";
  fileSystems."/" = {
    device = "/dev/disk/by-label/root";
    fsType = "ext4";
  };
  networking.hostName = "father";
  system.stateVersion = "21.05";
}
