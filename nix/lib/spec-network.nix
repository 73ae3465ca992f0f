# How the node gets its address. A spec names no interface, so every real network card is meant, or the one that
# `orch.network.interface` names.
role:
{ config, lib, ... }:

let
  network = role.network or "dhcp";
  interface = config.orch.network.interface;
in
if network == "dhcp" then
  { networking.useDHCP = lib.mkDefault true; }
else
  {
    networking.useDHCP = false;
    networking.useNetworkd = true;
    systemd.network.enable = true;
    systemd.network.networks."10-orch" = {
      matchConfig =
        if interface != null then
          { Name = interface; }
        else
          {
            Type = "ether";
            # Bridges, bonds and their like are of some kind; a card is of none.
            Kind = "!*";
          };
      address = [ network.static.ip ];
      gateway = lib.optional (network.static.gateway or null != null) network.static.gateway;
      dns = network.static.dns or [ ];
    };
  }
