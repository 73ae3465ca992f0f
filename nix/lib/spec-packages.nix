# Packages by name: what nixpkgs calls so, or calls otherwise than Debian does.
role:
{
  config,
  lib,
  pkgs,
  ...
}:

let
  # A site adds its own names to ours.
  names = import ./package-names.nix // config.orch.packageNames;

  squash = builtins.replaceStrings [ "-" "_" "." ] [ "" "" "" ];
  like = name: builtins.filter (other: squash other == squash name) (builtins.attrNames pkgs);

  refuse =
    name:
    let
      near = like name;
    in
    throw (
      "package `${name}` is not in this nixpkgs: "
      + (
        if near != [ ] then
          "did you mean `${builtins.head near}`?"
        else
          "say what it is called there in `orch.packageNames` of a module, or have a module install it"
      )
    );

  find =
    name:
    let
      meant = names.${name} or name;
      path = lib.splitString "." meant;
    in
    if builtins.match ".*[:/=~].*" name != null then
      throw "package `${name}` asks for a version or an architecture, which on NixOS is a matter of nixpkgs: name the package alone"
    else if pkgs ? ${meant} then
      pkgs.${meant}
    else
      lib.attrByPath path (refuse name) pkgs;

  isPackage = lib.isDerivation;
  take =
    name:
    let
      found = find name;
    in
    if isPackage found then
      found
    else
      throw "package `${name}` is something else in nixpkgs, not a package";
in
{
  environment.systemPackages = map take (role.packages or [ ]);
}
