# The NixOS of nodes with the spec `web`. Host name, users and SSH come from the spec; here is what a spec cannot say.
{ lib, modulesPath, ... }:

{
  imports = [ (modulesPath + "/profiles/qemu-guest.nix") ];

  nixpkgs.hostPlatform = lib.mkDefault "x86_64-linux";
  system.stateVersion = "26.05";

  # As the image has them.
  boot.loader.grub.device = "/dev/vda";
  fileSystems."/" = {
    device = "/dev/disk/by-label/nixos";
    fsType = "ext4";
  };

  services.nginx.enable = true;
  networking.firewall.allowedTCPPorts = [ 80 ];
}
