# A host that is NixOS itself.
{
  boot.loader.grub.device = "nodev";
  fileSystems."/" = {
    device = "/dev/disk/by-label/root";
    fsType = "ext4";
  };
  networking.hostName = "father";
  system.stateVersion = "21.05";
}
