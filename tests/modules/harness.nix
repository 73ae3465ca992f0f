# Evaluates the modules beside a stub of NixOS, and says of each promise whether it holds.
#
# A promise is worth nothing where it cannot be broken. So each one comes with a configuration under which it must not hold, and
# each refusal with its like that is accepted.
{ lib, nixpkgs }:

let
  pkgs = import ./packages.nix { inherit lib nixpkgs; };

  evaluate =
    module:
    (lib.evalModules {
      modules = [
        ./stub.nix
        ../../nix/modules/orchestrator
        ../../nix/modules/node
        module
      ];
      specialArgs = { inherit pkgs; };
    }).config;

  # Everything of a configuration that would come to be on a machine.
  seen = config: {
    inherit (config) assertions warnings systemd;
    inherit (config.users) users groups;
    inherit (config.networking.firewall) interfaces;
    etc = lib.mapAttrs (_: entry: toString entry.source) config.environment.etc;
  };

  evaluates = config: (builtins.tryEval (builtins.deepSeq (seen config) true)).success;

  objections = config: map (one: one.message) (lib.filter (one: !one.assertion) config.assertions);

  result = name: why: { inherit name why; };

  # Whether `holds` is true of `given`, and not of `unless`.
  promise =
    {
      name,
      given,
      holds,
      unless,
    }:
    let
      at = evaluate given;
      control = evaluate unless;
    in
    result name (
      if !evaluates at then
        "it does not evaluate"
      else if objections at != [ ] then
        "it is refused: ${lib.concatStringsSep "; " (objections at)}"
      else if !(holds at) then
        "it does not hold"
      else if !evaluates control then
        "its control does not evaluate"
      else if holds control then
        "it holds under its control too, so that it says nothing"
      else
        null
    );

  # Whether a value is refused by its type, while its like is not.
  refused =
    {
      name,
      wrong,
      right,
    }:
    result name (
      if evaluates (evaluate wrong) then
        "it is accepted"
      else if !evaluates (evaluate right) then
        "its control is refused too"
      else
        null
    );

  # Whether an assertion refuses a configuration in these words, while its like passes.
  objected =
    {
      name,
      wrong,
      right,
      remedy,
    }:
    let
      said = objections (evaluate wrong);
    in
    result name (
      if said == [ ] then
        "nothing objects"
      else if !lib.any (lib.hasInfix remedy) said then
        "the remedy `${remedy}` is not told: ${lib.concatStringsSep "; " said}"
      else if objections (evaluate right) != [ ] then
        "its control is refused too"
      else
        null
    );
in
{
  inherit
    evaluate
    promise
    refused
    objected
    result
    ;
}
