# What `orch` runs: the nodes of a run in, their systems out, as JSON both ways.
#
#   nix-instantiate --eval --strict --json --read-write-mode evaluate.nix \
#     --argstr input FILE [--argstr nixpkgs FOLDER] [--argstr only '["<identity>"]']
#
# Everything that people wrote arrives as JSON and stays data; nothing here puts Nix code together.
{
  # A file with the nodes: { version, site, nodes = { <identity> = { name, kind, modules, platform, tags, config }; }; }
  input,
  # A folder with nixpkgs. Without it, what the site's flake.lock names, else `<nixpkgs>`.
  nixpkgs ? null,
  # The identities that are wanted, as a JSON list; without it, all of them.
  only ? null,
}:

let
  asked = builtins.fromJSON (builtins.readFile input);

  known =
    if asked.version or null == 1 then
      asked
    else
      throw "`${baseNameOf input}` is of version ${
        builtins.toJSON (asked.version or null)
      }, and this library reads version 1";

  from = import ./nixpkgs.nix {
    inherit nixpkgs;
    site = known.site;
  };

  orch = import ./. { lib = import (from + "/lib"); };

  wanted = if only == null then builtins.attrNames known.nodes else builtins.fromJSON only;

  pick =
    identity:
    known.nodes.${identity} or (throw "`${identity}` is not among the nodes of `${baseNameOf input}`");

  fleet = orch.evaluate {
    inherit (known) site;
    nixpkgs = from;
    nodes = builtins.listToAttrs (
      map (identity: {
        name = identity;
        value = pick identity;
      }) wanted
    );
  };
in
builtins.mapAttrs (_: orch.plain) fleet
