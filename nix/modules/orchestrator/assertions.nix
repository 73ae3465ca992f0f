# What the types cannot say, each with its remedy.
{ config, lib, ... }:

let
  cfg = config.services.orchestrator;

  isEverywhere =
    address:
    lib.hasPrefix "0.0.0.0:" address || lib.hasPrefix "[::]:" address || !lib.hasInfix ":" address;
  isHere = address: lib.hasPrefix "127." address || lib.hasPrefix "[::1]:" address;
in
{
  config = lib.mkIf cfg.enable {
    assertions = [
      {
        assertion = cfg.hasSettings -> builtins.isPath cfg.site;
        message = ''
          services.orchestrator.settings would take the place of site.yaml in "${toString cfg.site}", which is outside of the store.
          Either write these settings into that file, or have the site in the store, as a path: services.orchestrator.site = ./site;
        '';
      }
      {
        assertion = cfg.listen != [ ];
        message = ''
          services.orchestrator.listen is empty, so that no node could reach the server.
          Name an address, or leave the option out, which means "127.0.0.1:44443".
        '';
      }
      {
        assertion = cfg.firewallInterfaces != [ ] -> !(lib.all isHere cfg.listen);
        message = ''
          services.orchestrator.firewallInterfaces opens ${lib.concatStringsSep ", " cfg.firewallInterfaces}, but the server listens on this machine's loopback only.
          Name an address that nodes reach: services.orchestrator.listen = [ "10.0.12.1:44443" ];
        '';
      }
    ];

    warnings = lib.optional (lib.any isEverywhere cfg.listen && !config.networking.firewall.enable) ''
      services.orchestrator.listen takes connections on every interface, and there is no firewall.
      Name the address that nodes reach, or enable networking.firewall and set services.orchestrator.firewallInterfaces.
    '';
  };
}
