# What a spec means on NixOS, so that the same spec means the same there as on Debian.
#
# The spec holds: where a module of the node says otherwise, NixOS refuses both and names them, and `lib.mkForce` is how a module
# wins on purpose. Only the time zone is a default, because every spec has one, said or not. What cannot be had throws.
role:

{
  config,
  lib,
  options,
  pkgs,
  ...
}@args:

let
  part = file: import file role args;
in
{
  _file = "orch: the spec of `${config.orch.node.identity}`";

  config = lib.mkMerge [
    {
      networking.hostName = role.hostname;
      time.timeZone = lib.mkDefault role.timezone;
    }
    (lib.mkIf (role.domain or null != null) { networking.domain = role.domain; })
    (part ./spec-network.nix)
    (part ./spec-access.nix)
    (part ./spec-packages.nix)
    (part ./spec-services.nix)
    (part ./spec-files.nix)
    (part ./spec-hypervisor.nix)
  ];
}
