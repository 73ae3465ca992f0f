# What takes a newer Nix: a site that is copied to the store, and a whole NixOS, into which the modules fit and where their
# units can be read.
{ nixpkgs }:

let
  lib = import (nixpkgs + "/lib");

  system = module: (import ./system.nix { inherit nixpkgs module; }).config;

  result = name: why: { inherit name why; };

  toplevel = config: builtins.tryEval (builtins.seq config.system.build.toplevel.drvPath true);
  unit = config: name: config.systemd.units.${name}.text;

  both = system {
    services.orchestrator = {
      enable = true;
      site = ./site;
      settings.name = "home";
      listen = [ "10.0.12.1:44443" ];
      firewallInterfaces = [ "vmbr0" ];
      ageIdentityFile = "/var/lib/secrets/age";
    };
    services.orch-node.enable = true;
    services.orch-node.pull = {
      enable = true;
      interval = "15min";
    };
  };
  soft = system {
    services.orchestrator = {
      enable = true;
      site = "/srv/site";
      hardening = false;
    };
  };
  wrong = system {
    services.orchestrator = {
      enable = true;
      site = "/srv/site";
      listen = [ ];
    };
  };

  has = lines: text: lib.all (line: lib.hasInfix "\n${line}\n" text) lines;
  hardened = [
    "CapabilityBoundingSet="
    "ProtectSystem=strict"
    "NoNewPrivileges=true"
    "User=orchestrator"
  ];
in
import ./copied-site.nix {
  inherit lib;
  harness = import ./harness.nix { inherit lib nixpkgs; };
}
++ [
  (result "a machine with a server and a node is a system" (
    if !(toplevel both).success then
      "it does not evaluate"
    else if (toplevel wrong).success then
      "its control, which an assertion refuses, evaluates too"
    else
      null
  ))
  (result "the server's unit is hardened, and has its secrets as credentials" (
    let
      text = unit both "orchestrator.service";
    in
    if !has (hardened ++ [ "LoadCredential=age-identity:/var/lib/secrets/age" ]) text then
      "it is not: ${text}"
    else if has hardened (unit soft "orchestrator.service") then
      "its control is hardened too"
    else
      null
  ))
  (result "the server's socket is where it was asked for" (
    if
      has [ "ListenStream=10.0.12.1:44443" ] (unit both "orchestrator.socket")
      && !has [ "ListenStream=10.0.12.1:44443" ] (unit soft "orchestrator.socket")
    then
      null
    else
      unit both "orchestrator.socket"
  ))
  (result "the node's timer is there where an interval is" (
    if
      has [ "OnUnitInactiveSec=15min" ] (unit both "orch-node.timer")
      && !(soft.systemd.units ? "orch-node.timer")
    then
      null
    else
      "it is not"
  ))
  (result "the firewall stays closed on every other interface" (
    let
      inherit (both.networking) firewall;
    in
    if firewall.interfaces.vmbr0.allowedTCPPorts != [ 44443 ] then
      "it is closed on the one asked for"
    else if lib.elem 44443 firewall.allowedTCPPorts then
      "it is open on all"
    else
      null
  ))
]
