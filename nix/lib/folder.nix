# The files of one kind in a site, by name: the stem of a file is its key.
{ lib }:

let
  # `{ web = ./web.nix; }`, of files that Nix can read. YAML is orch's to read, so of that only the name is known.
  stem = file: builtins.match "([a-z][a-z0-9-]*)\\.(nix|json|toml|yaml|yml)" file;

  read =
    path:
    let
      kind = builtins.elemAt (stem (baseNameOf path)) 1;
    in
    if kind == "nix" then
      import path
    else if kind == "json" then
      builtins.fromJSON (builtins.readFile path)
    else if kind == "toml" then
      builtins.fromTOML (builtins.readFile path)
    else
      null;

  files =
    folder:
    let
      listed = lib.filterAttrs (file: kind: kind != "directory" && stem file != null) (
        builtins.readDir folder
      );
    in
    lib.mapAttrs' (file: _: lib.nameValuePair (builtins.head (stem file)) (folder + "/${file}")) listed;

  folders = folder: lib.filterAttrs (_: kind: kind == "directory") (builtins.readDir folder);
in
{
  # What a folder holds, or what a set says already, by name; null where it cannot be read here.
  contents = from: if builtins.isAttrs from then from else lib.mapAttrs (_: read) (files from);

  # Only the names, for references; null where nothing is known of that kind.
  names =
    from:
    if from == null then
      null
    else if builtins.isAttrs from then
      builtins.attrNames from
    else
      lib.unique (builtins.attrNames (files from) ++ builtins.attrNames (folders from));

  # The NixOS modules of hosts: `<name>/default.nix`.
  modules =
    from:
    if builtins.isAttrs from then
      from
    else
      lib.mapAttrs (name: _: from + "/${name}") (
        lib.filterAttrs (name: _: builtins.pathExists (from + "/${name}/default.nix")) (folders from)
      );
}
