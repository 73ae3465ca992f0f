# The folder that is served: what was named, or a copy of it in the store, with `site.yaml` from the settings.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  cfg = config.services.orchestrator;
  format = pkgs.formats.yaml { };

  # What orch reads of a site. Everything else (build results, a checkout's history) stays out of the store.
  parts = [
    "hosts"
    "manifests"
    "postures"
    "presets"
    "secrets"
    "site.yaml"
    "specs"
    ".sops.yaml"
  ];

  copied = lib.fileset.toSource {
    root = cfg.site;
    fileset = cfg.siteFiles;
  };

  # The defaults of the typed settings do not make a file: they are what orch does without one.
  said = lib.filterAttrs (_: value: value != { }) (
    cfg.settings
    // {
      server =
        lib.optionalAttrs cfg.settings.server.accept_legacy_tokens { accept_legacy_tokens = true; }
        // lib.optionalAttrs (cfg.settings.server.signing_keys != { }) {
          inherit (cfg.settings.server) signing_keys;
        };
    }
  );

  # Links, so that a change of the settings copies nothing again.
  withSettings = pkgs.linkFarm "orch-site" (
    [
      {
        name = "site.yaml";
        path = format.generate "site.yaml" said;
      }
    ]
    ++ map (part: {
      name = part;
      path = "${copied}/${part}";
    }) (lib.filter (part: part != "site.yaml" && builtins.pathExists (cfg.site + "/${part}")) parts)
  );
in
{
  options.services.orchestrator = {
    hasSettings = lib.mkOption {
      type = lib.types.bool;
      internal = true;
      readOnly = true;
      default = said != { };
    };
    siteFiles = lib.mkOption {
      type = lib.types.raw;
      internal = true;
      readOnly = true;
      default = lib.fileset.unions (map (part: lib.fileset.maybeMissing (cfg.site + "/${part}")) parts);
    };
    servedSite = lib.mkOption {
      type = lib.types.path;
      internal = true;
      readOnly = true;
      default =
        if !builtins.isPath cfg.site then
          cfg.site
        else if cfg.hasSettings then
          withSettings
        else
          copied;
    };
  };

  config = lib.mkIf cfg.enable {
    environment.etc."orch/site".source = cfg.servedSite;
  };
}
