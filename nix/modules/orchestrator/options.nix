# What can be said about the server, and what holds where nothing is said.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  inherit (lib)
    literalExpression
    mkEnableOption
    mkOption
    types
    ;

  cfg = config.services.orchestrator;
  format = pkgs.formats.yaml { };

  inherit (import ../types.nix { inherit lib; })
    account
    address
    mention
    secretFile
    ;

  siteFile = types.submoduleWith {
    # Said here, since nixpkgs words it differently from release to release.
    description = "what a `site.yaml` holds";
    shorthandOnlyDefinesConfig = true;
    modules = [
      {
        freeformType = format.type;
        options.server = {
          accept_legacy_tokens = mkOption {
            type = types.bool;
            default = false;
            example = true;
            description = "Whether tokens without audience and expiry are still taken.";
          };
          signing_keys = mkOption {
            type = types.attrsOf mention;
            default = { };
            example = {
              "2026-01" = "secret:server-key";
            };
            description = ''
              The keys that sign tokens, by their name, each as a mention of a value in the site's sops files. Without any,
              the server makes a key and keeps it with its state.
            '';
          };
        };
      }
    ];
  };
in
{
  options.services.orchestrator = {
    enable = mkEnableOption "the server of orch, where nodes that pull fetch their configuration";

    package = mkOption {
      type = types.package;
      # Not by `pkgs.orch`: the module must work without the overlay, and a package of that name may come from elsewhere. Nor with a
      # program for nodes: a server brings none, and a static one takes a second nixpkgs.
      default = pkgs.callPackage ../../package.nix { };
      defaultText = literalExpression "orch.packages.\${system}.orch.override { nodeProgram = null; }";
      example = literalExpression "pkgs.orch";
      description = "The package that `orch` is taken from.";
    };

    site = mkOption {
      type = types.path;
      example = "/srv/site";
      description = ''
        The site that is served. As text, a folder of this machine, which is followed at every edit. As a Nix path, such as
        `./.`, what orch reads of it is copied to the store, and changes with the next system. Secrets of a site are
        encrypted, so that they may be there. Either way `/etc/orch/site` leads to it.
      '';
    };

    settings = mkOption {
      type = siteFile;
      default = { };
      example = {
        name = "home";
        domain = "home.example";
        timezone = "Europe/Berlin";
      };
      description = ''
        What `site.yaml` says, in the stead of the file of that name in {option}`services.orchestrator.site`, which then
        has to be a Nix path. Where nothing is set here, that file is used. The keys are those of `site.yaml`.
      '';
    };

    listen = mkOption {
      type = types.listOf address;
      default = [ "127.0.0.1:44443" ];
      example = [
        "10.0.12.1:44443"
        "[fd00::1]:44443"
      ];
      description = ''
        Where nodes are listened to. systemd holds these sockets, so that no node is turned away while the server
        restarts, and an address may belong to an interface that comes up later.
      '';
    };

    firewallInterfaces = mkOption {
      type = types.listOf types.nonEmptyStr;
      default = [ ];
      example = [ "vmbr0" ];
      description = ''
        The interfaces on which the firewall lets nodes through to the ports of {option}`services.orchestrator.listen`. No
        other interface is opened; there is no way to open all of them at once.
      '';
    };

    connections = mkOption {
      type = types.ints.between 16 100000;
      default = 2048;
      example = 4096;
      description = "How many connections there may be at once.";
    };

    logFormat = mkOption {
      type = types.enum [
        "text"
        "json"
      ];
      default = "text";
      example = "json";
      description = "How lines of the access log are written. They hold neither tokens nor bodies.";
    };

    ageIdentityFile = mkOption {
      type = types.nullOr secretFile;
      default = null;
      example = "/var/lib/secrets/orchestrator.age";
      description = ''
        The age identity that opens the site's sops files. It may be readable by root alone: systemd reads it and hands it to
        the server in memory.
      '';
    };

    sshIdentityFile = mkOption {
      type = types.nullOr secretFile;
      default = null;
      example = "/etc/ssh/ssh_host_ed25519_key";
      description = "An ssh-ed25519 private key without a passphrase that opens the site's sops files, handed over in the same way.";
    };

    user = mkOption {
      type = account "user";
      default = "orchestrator";
      example = "provisioner";
      description = ''
        The user that the server runs as. It is made where it has the default name. Besides root, only this user may ask the
        server what an operator asks.
      '';
    };

    group = mkOption {
      type = account "group";
      default = "orchestrator";
      example = "provisioner";
      description = "The group that the server runs as. It is made where it has the default name.";
    };

    stateDirectory = mkOption {
      type = types.strMatching "[A-Za-z0-9_-][A-Za-z0-9_.-]*" // {
        description = "name of a folder below `/var/lib`";
        descriptionClass = "noun";
      };
      # Not `orch`: that one belongs to root, and holds what this machine is as a node.
      default = "orchestrator";
      example = "orch-server";
      description = ''
        The folder below `/var/lib` that holds the server's certificates, its keys, which tokens were used and what nodes
        reported. Back it up: without it every node has to be enrolled anew.
      '';
    };

    hardening = mkOption {
      type = types.bool;
      default = true;
      example = false;
      description = ''
        Whether the server is kept from everything that it does not need. Switch it off to find out whether it is in the
        way of something, and not for good.
      '';
    };
  };

  config.environment = lib.mkIf cfg.enable {
    # For operators: `orch --site /etc/orch/site token list`.
    systemPackages = [ cfg.package ];
  };
}
