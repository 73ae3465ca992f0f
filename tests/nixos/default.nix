# Machines that are really started, one file each. They need KVM, or a lot of patience.
{
  lib,
  pkgs,
  modules,
}:

let
  files = lib.filterAttrs (name: _: name != "default.nix" && lib.hasSuffix ".nix" name) (
    builtins.readDir ./.
  );
in
lib.mapAttrs' (
  file: _:
  lib.nameValuePair (lib.removeSuffix ".nix" file) (
    pkgs.testers.runNixOSTest {
      imports = [ (./. + "/${file}") ];
      _module.args = { inherit modules; };
    }
  )
) files
