# A NixOS with both modules, that boots nowhere.
{ nixpkgs, module }:

import (nixpkgs + "/nixos/lib/eval-config.nix") {
  system = "x86_64-linux";
  modules = [
    ../../nix/modules/orchestrator
    ../../nix/modules/node
    module
    (
      { lib, ... }:
      {
        boot.loader.grub.enable = false;
        fileSystems."/" = {
          device = "/dev/disk/by-label/root";
          fsType = "ext4";
        };
        # Nobody reads it here, and it takes longer than the rest.
        documentation.enable = false;
        system.stateVersion = lib.trivial.release;
      }
    )
  ];
}
