# What `services.orchestrator` promises of a site in the store. Copying one takes a Nix that is newer than the rest needs.
{ lib, harness }:

let
  inherit (harness) promise refused objected;

  with' = settings: {
    services.orchestrator = {
      enable = true;
      site = "/srv/site";
    }
    // settings;
  };
in
[
  (promise {
    name = "a site in the store gets its site.yaml from the settings";
    given = with' {
      site = ./site;
      settings.name = "home";
    };
    holds =
      config:
      let
        entries = config.services.orchestrator.servedSite.entries or [ ];
        named = lib.listToAttrs (map (entry: lib.nameValuePair entry.name entry.path) entries);
      in
      named ? manifests && builtins.fromJSON (named."site.yaml".value) == { name = "home"; };
    unless = with' { site = ./site; };
  })
  (promise {
    name = "signing keys of the settings reach site.yaml as mentions";
    given = with' {
      site = ./site;
      settings.server.signing_keys.a = "secret:server-key";
    };
    holds =
      config:
      let
        file = lib.findFirst (
          entry: entry.name == "site.yaml"
        ) null config.services.orchestrator.servedSite.entries;
      in
      builtins.fromJSON file.path.value == {
        server.signing_keys.a = "secret:server-key";
      };
    unless = with' {
      site = ./site;
      settings.server.signing_keys.a = "secret:another-key";
    };
  })
  (promise {
    name = "of a site in the store, only what orch reads is copied";
    given = with' { site = ./site; };
    holds =
      config:
      let
        inherit (config.services.orchestrator) site siteFiles;
        copied = map (lib.path.removePrefix site) (lib.fileset.toList siteFiles);
      in
      copied == [
        "./manifests/small.yaml"
        "./site.yaml"
      ];
    # One that holds something else, and nothing of a site.
    unless = with' { site = ./.; };
  })
  (refused {
    name = "a signing key that is a literal is refused";
    wrong = with' {
      site = ./site;
      settings.server.signing_keys.a = "0000000000000000000000000000000000000000000000000000000000000000";
    };
    right = with' {
      site = ./site;
      settings.server.signing_keys.a = "secret:server-key";
    };
  })
  (objected {
    name = "settings beside a site outside of the store are refused, with both ways out";
    wrong = with' { settings.name = "home"; };
    right = with' {
      site = ./site;
      settings.name = "home";
    };
    remedy = "services.orchestrator.site = ./site;";
  })
]
