# As much of NixOS as the modules touch, so that most of what they promise can be seen without evaluating a whole system.
{ lib, ... }:

let
  anything = lib.mkOption {
    type = lib.types.attrsOf lib.types.anything;
    default = { };
  };
  list = lib.mkOption {
    type = lib.types.listOf lib.types.anything;
    default = [ ];
  };
in
{
  options = {
    assertions = list;
    warnings = list;
    environment.etc = anything;
    environment.systemPackages = list;
    networking.firewall.enable = lib.mkOption {
      type = lib.types.bool;
      default = true;
    };
    networking.firewall.interfaces = anything;
    networking.firewall.allowedTCPPorts = list;
    nix.package = lib.mkOption {
      type = lib.types.anything;
      default = "/nix-of-the-machine";
    };
    systemd.paths = anything;
    systemd.services = anything;
    systemd.sockets = anything;
    systemd.timers = anything;
    users.groups = anything;
    users.users = anything;
  };
}
