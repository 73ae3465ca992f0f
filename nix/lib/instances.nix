# One nixpkgs for all nodes that agree on system, config and overlays. Making one takes longer than a node's own modules.
#
# What cannot be compared is not shared: overlays of a node's own and functions in its config give it an instance of its own,
# as NixOS makes it. A test holds the derivations against those of separate instances.
{ lib }:
{
  # The folder.
  nixpkgs,
  # Overlays of all nodes. That they are the same is known by their being given here; two functions cannot be compared.
  overlays ? [ ],
}:

let
  # Where text becomes a value once, whoever asks: a tree of all texts, of which only the ways that were gone exist. So no node's
  # wish has to be known for another's to be fulfilled, and a node that cannot be evaluated is in nobody's way.
  remember = make: text: {
    value = make text;
    next = lib.genAttrs alphabet (letter: remember make (text + letter));
  };
  recall =
    tree: text:
    (builtins.foldl' (at: letter: at.next.${letter}) tree (lib.stringToCharacters text)).value;

  alphabet = lib.stringToCharacters (
    " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"
  );

  made = remember (
    text:
    let
      wish = builtins.fromJSON text;
    in
    import nixpkgs {
      inherit (wish) system config;
      inherit overlays;
    }
  ) "";

  # What is the same after a way through JSON.
  isData =
    value:
    if builtins.isAttrs value then
      !(value ? outPath) && builtins.all isData (builtins.attrValues value)
    else if builtins.isList value then
      builtins.all isData value
    else if builtins.isString value then
      !builtins.hasContext value
    else
      builtins.isInt value || builtins.isBool value || value == null;

  # Platforms hold functions, which are never equal, beside what says whether they are.
  same =
    one: other:
    let
      comparable = lib.filterAttrs (_: value: !builtins.isFunction value);
    in
    comparable one == comparable other;

  # What a node wants of nixpkgs, from its own options; null where it is like nobody else.
  wishOf =
    cfg: options:
    let
      isNew = options ? hostPlatform && options.hostPlatform.isDefined;
      host = if isNew then cfg.hostPlatform else cfg.localSystem;
      isNative = if isNew then same host cfg.buildPlatform else cfg.crossSystem == null;
      text = builtins.toJSON {
        inherit (cfg) config;
        inherit (host) system;
      };
      isPlain = lib.all (letter: lib.elem letter alphabet) (lib.stringToCharacters text);
      isComparable =
        isNative
        && builtins.length cfg.overlays == builtins.length overlays
        && isData cfg.config
        && same host (lib.systems.elaborate host.system);
    in
    if isComparable && isPlain then text else null;
in
# A module that has its node use the instance that is others' too.
{
  config,
  options,
  lib,
  ...
}:
let
  wish = wishOf config.nixpkgs options.nixpkgs;
  isBare = config.nixpkgs.config == { } && overlays == [ ];
in
{
  _file = "orch: one nixpkgs for all";
  nixpkgs.overlays = lib.mkBefore overlays;
  # NixOS refuses an instance from outside beside a config, and adds overlays to it again. There the argument of modules is set instead.
  nixpkgs.pkgs = lib.mkIf (wish != null && isBare) (lib.mkDefault (recall made wish));
  _module.args.pkgs = lib.mkIf (wish != null && !isBare) (lib.mkForce (recall made wish));
}
