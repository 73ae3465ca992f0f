# Hosts that are NixOS themselves: every folder of `hosts/` with a `default.nix`, by the way in which `orch rollout` evaluates them.
{
  lib,
  nixpkgs,
  orch,
  site,
}:

let
  folders = lib.filterAttrs (
    name: kind: kind == "directory" && builtins.pathExists (site + "/hosts/${name}/default.nix")
  ) (builtins.readDir (site + "/hosts"));

  identity = name: "host.${name}@${name}";

  systems = orch.evaluate {
    inherit nixpkgs site;
    nodes = lib.mapAttrs' (
      name: _:
      lib.nameValuePair (identity name) {
        inherit name;
        kind = "host";
        modules = [ "hosts/${name}" ];
        # Hosts say their platform themselves (`nixpkgs.hostPlatform`); nothing may be taken from whoever evaluates.
        platform = "x86_64-linux";
      }
    ) folders;
  };
in
lib.mapAttrs (name: _: systems.${identity name}) folders
