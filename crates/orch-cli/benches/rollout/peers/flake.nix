# What deploy-rs reads: the same nodes with the same systems, each with the two programs beside it that deploy-rs looks for.
{
  outputs =
    _:
    let
      data = builtins.fromJSON (builtins.readFile ./data.json);
      systemOf =
        name:
        builtins.head (
          import data.fleet {
            inherit (data) nixpkgs module;
            nodes = name;
          }
        );
      # Its own library makes the same of `writeTextFile` and `buildEnv`.
      activatable =
        base:
        derivation {
          name = "activatable-${base.name}";
          system = builtins.currentSystem;
          builder = "/bin/sh";
          PATH = "/usr/bin:/bin";
          inherit base;
          program = builtins.storePath data.activate;
          args = [ ./activatable ];
        };
      node = name: {
        inherit name;
        value = {
          hostname = name;
          sshUser = "root";
          sshOpts = [
            "-F"
            data.ssh_config
          ];
          profiles.system = {
            user = "root";
            path = activatable (systemOf name);
          };
        };
      };
    in
    {
      deploy.nodes = builtins.listToAttrs (map node data.nodes);
    };
}
