# Services to run and not to run. NixOS knows most by an option of theirs; the rest are units that a module of the node defines.
role:
{
  config,
  lib,
  options,
  ...
}:

let
  services = role.services or { };

  others = import ./service-options.nix;

  # What systemd has besides services: where it is defined, and what pulls it in at boot.
  kinds = {
    service = {
      under = "services";
      target = "multi-user.target";
    };
    timer = {
      under = "timers";
      target = "timers.target";
    };
    socket = {
      under = "sockets";
      target = "sockets.target";
    };
    path = {
      under = "paths";
      target = "paths.target";
    };
    target = {
      under = "targets";
      target = "multi-user.target";
    };
  };

  # `nginx` and `nginx.service` are one unit.
  read =
    unit:
    let
      parts = builtins.match "(.+)\\.(service|timer|socket|path|target)" unit;
      other = builtins.match ".+\\.(mount|automount|swap|slice|scope|device)" unit;
    in
    if other != null then
      throw "unit `${unit}` cannot be switched by a spec on NixOS, where a module defines what is mounted and sliced"
    else if parts != null then
      {
        inherit unit;
        name = builtins.head parts;
        kind = builtins.elemAt parts 1;
      }
    else
      {
        inherit unit;
        name = unit;
        kind = "service";
      };

  optionOf =
    { name, kind, ... }:
    let
      path =
        others.${name} or [
          "services"
          name
        ];
    in
    if kind == "service" && lib.hasAttrByPath (path ++ [ "enable" ]) options then path else null;

  switch =
    isOn: unit:
    let
      read' = read unit;
      path = optionOf read';
      kind = kinds.${read'.kind};
    in
    if path != null then
      lib.setAttrByPath (path ++ [ "enable" ]) isOn
    else
      {
        systemd.${kind.under}.${read'.name} =
          if isOn then { wantedBy = [ kind.target ]; } else { enable = false; };
      };

  # A unit that only a spec speaks of has nothing to do, and would start without a word.
  isDefined =
    { name, kind, ... }:
    let
      unit = config.systemd.${kinds.${kind}.under}.${name};
    in
    {
      service = unit.script or "" != "" || unit.serviceConfig ? ExecStart;
      timer = unit.timerConfig or { } != { };
      socket = unit.socketConfig or { } != { } || unit.listenStreams or [ ] != [ ];
      path = unit.pathConfig or { } != { };
      target = true;
    }
    .${kind};

  switchedAsUnits = builtins.filter (one: optionOf one == null) (map read (services.enable or [ ]));
in
lib.mkMerge (
  map (switch true) (services.enable or [ ])
  ++ map (switch false) (services.disable or [ ])
  ++ [
    {
      assertions = map (one: {
        assertion = isDefined one;
        message = "orch: service `${one.unit}` is to run, but NixOS has no option `services.${one.name}.enable`, and no module of the node defines that unit. Have one define or switch it.";
      }) switchedAsUnits;
    }
  ]
)
