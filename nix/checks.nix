# What must hold: packages, lints, tests, the modules, every host, and machines that are really started.
{
  lib,
  pkgs,
  packages,
  hosts,
  modules,
}:

let
  tested = packages.orch.override {
    runTests = true;
    nodeProgram = null;
  };

  # A step of Cargo in the same place, and with the same dependencies, as the build.
  cargo =
    name: tools: command:
    tested.overrideAttrs (old: {
      pname = "orch-${name}";
      nativeBuildInputs = old.nativeBuildInputs ++ tools;
      buildPhase = ''
        runHook preBuild
        ${command}
        runHook postBuild
      '';
      doCheck = false;
      installPhase = "touch $out";
      postInstall = "";
      postFixup = "";
    });

  # Tests that are over once they are evaluated. What failed is the error.
  evaluated =
    name: results:
    let
      failures = lib.filter (result: result.why != null) results;
      told = lib.concatMapStringsSep "\n" (result: "FAILED ${result.name}: ${result.why}") failures;
    in
    if failures == [ ] then
      pkgs.runCommand "orch-${name}" { } "touch $out"
    else
      throw "${name}: ${toString (lib.length failures)} of ${toString (lib.length results)} do not hold\n${told}";

  # Of the tests of `nix/lib`, those that say what they found. `tests/eval/run` has the rest: what is about messages, and `instances`, whose
  # many whole systems would take more memory than all other outputs of the flake.
  library =
    nixpkgs: file:
    let
      found = import (../tests/eval + "/${file}.nix") {
        inherit nixpkgs;
        lib = import (nixpkgs + "/lib");
        library = ./lib;
        inherit standIn;
      };
    in
    lib.mapAttrsToList (name: test: {
      name = "${file}: ${name}";
      why =
        if test.is == test.wanted then
          null
        else
          "it is ${builtins.toJSON test.is}, and was to be ${builtins.toJSON test.wanted}";
    }) found.tests;

  standIn = ../tests/nix/stand-in;

  # The platform of a host decides where it is built.
  here = lib.filterAttrs (
    _: host: host.pkgs.stdenv.hostPlatform.system == pkgs.stdenv.hostPlatform.system
  ) hosts;

  machines = import ../tests/nixos { inherit lib pkgs modules; };
in
packages
// {
  clippy = cargo "clippy" [
    pkgs.clippy
  ] "cargo clippy --workspace --all-targets --all-features --offline -- -D warnings";
  format = cargo "format" [
    pkgs.rustfmt
    pkgs.nixfmt
  ] "cargo fmt --all --check && find . -name '*.nix' -exec nixfmt --check {} +";
  tests = tested;
  eval = evaluated "eval" (
    lib.concatMap (library standIn) [
      "evaluate"
      "hostile"
      "manifest"
    ]
    ++ lib.concatMap (library pkgs.path) [
      "types"
      "schema"
      "spec-access"
      "spec-platform"
      "fleet"
    ]
  );
  modules = evaluated "modules" (
    import ../tests/modules { nixpkgs = pkgs.path; }
    ++ import ../tests/modules/nixos.nix { nixpkgs = pkgs.path; }
  );
}
// lib.mapAttrs' (
  name: host: lib.nameValuePair "host-${name}" host.config.system.build.toplevel
) here
// lib.mapAttrs' (name: lib.nameValuePair "vm-${name}") machines
