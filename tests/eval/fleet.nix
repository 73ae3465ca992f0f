# A site as Nix code sees it: mkFleet, with the real module system.
{
  nixpkgs,
  lib,
  library,
  ...
}:

let
  orch = import library { inherit lib; };

  fleet =
    more:
    orch.mkFleet (
      {
        inherit nixpkgs;
        site = ./site;
        hosts = ./site/hosts;
        manifests = ./site/manifests;
        specs.web = { };
      }
      // more
    );

  # What orch writes for its own evaluation serves mkFleet too.
  resolved = builtins.toFile "fleet.json" (
    builtins.toJSON {
      version = 1;
      site = toString ./site;
      nodes."host.father@father" = {
        name = "father";
        kind = "host";
        modules = [ "hosts/father" ];
        platform = "x86_64-linux";
        tags = [ "front" ];
        config.nixos.rollout = "nixos-rebuild";
      };
    }
  );

  site = fleet { fleet = resolved; };
  father = site.nodes."host.father@father";
  manifest = manifests: (fleet { inherit manifests; }).manifests.web;
  node = more: {
    web = {
      schema_version = 2;
      name = "web";
      nodes = [
        (
          {
            name = "web";
            type = "vm";
          }
          // more
        )
      ];
    };
  };
in
{
  tests = {
    "a host with a default.nix is a system" = {
      is = [
        (lib.hasSuffix ".drv" site.hosts.father.toplevel.drvPath)
        site.hosts.father.config.networking.hostName
      ];
      wanted = [
        true
        "father"
      ];
    };
    "a node has all that a rollout asks for" = {
      is = {
        inherit (father)
          health
          secrets
          tags
          deploy
          system
          ;
      };
      wanted = {
        health = [ ];
        secrets = [ ];
        tags = [ "front" ];
        deploy = {
          rollout = "nixos-rebuild";
          install = null;
        };
        system = "x86_64-linux";
      };
    };
    "a host that says its platform is the same whoever asks for it" = {
      is = site.hosts.father.toplevel.drvPath;
      wanted = father.toplevel.drvPath;
    };
    "a host has no spec: what its module does not say is NixOS's own default" = {
      is = [
        father.config.services.openssh.enable
        father.config.time.timeZone
      ];
      wanted = [
        false
        null
      ];
    };
    "manifests are typed data, by name" = {
      is = builtins.mapAttrs (_: one: builtins.length one.nodes) site.manifests;
      wanted = {
        many = 20;
        plain = 1;
      };
    };
  };

  refusals = {
    "a manifest that calls itself otherwise than its file" = {
      value = manifest { web = import ./site/manifests/plain.nix; };
      words = "manifest `web` calls itself `plain`";
    };
    "a spec that the site does not have" = {
      value = manifest (node {
        spec = "wbe";
      });
      words = "manifest `web`: node `web` has spec `wbe`, which this site does not have";
    };
    "a host that the site does not have" = {
      value = manifest (node {
        host = "mother";
      });
      words = "node `web` has host `mother`, which this site does not have";
    };
  };
}
