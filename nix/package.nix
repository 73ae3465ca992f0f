# One program of the workspace.
{
  lib,
  stdenv,
  rustPlatform,
  rustc,
  installShellFiles,
  makeBinaryWrapper,

  # The program: `orch`, or the one for nodes, which is built against a static libc so that it needs no library there.
  program ? "orch",

  # The package with the `orch-node` that `orch` brings to nodes elsewhere, unless it is told another one. Without it, that is
  # `orch` itself, which runs only where this store is.
  nodeProgram ? null,

  # The whole workspace's tests, beside the build of the one binary. `nix flake check` turns them on.
  runTests ? false,
}:

let
  inherit ((lib.importTOML ../Cargo.toml).workspace) package;

  # Read from the manifest, so that Cargo and Nix cannot disagree about the oldest compiler.
  rustVersion = package.rust-version;

  # Cargo would refuse an older compiler too, but only after all dependencies are fetched and without the remedy.
  # It guards the source and not the package, so that `override` can still be reached.
  requireRust = lib.throwIf (lib.versionOlder (lib.getVersion rustc) rustVersion) ''
    orch needs rustc ${rustVersion} or newer, and this nixpkgs has ${lib.getVersion rustc}.
    NixOS 26.05 is the first release that is new enough. Either leave orch's own nixpkgs in place (no
    `inputs.nixpkgs.follows` for it), or let it follow nixos-26.05 or newer, or give it another compiler:
      orch.override { inherit (newer) rustc rustPlatform; }
  '';

  # What the compiler reads, and nothing else: a change elsewhere rebuilds nothing. The tests read the sample site, the fixtures
  # and the rules of the house as well. What this tree does not have is skipped; the compiler and the tests say what they miss.
  sources = lib.fileset.unions (
    map lib.fileset.maybeMissing (
      [
        ../Cargo.toml
        ../Cargo.lock
        ../crates
        ./lib
      ]
      ++ lib.optionals runTests [
        ../.ci
        ../deny.toml
        ../docs
        ../flake.nix
        ../fuzz
        ../hosts
        ../manifests
        ../nix
        ../postures
        ../presets
        ../rustfmt.toml
        ../clippy.toml
        ../site.yaml
        ../specs
        ../tests
      ]
    )
  );
in
rustPlatform.buildRustPackage {
  pname = program;
  inherit (package) version;

  src = requireRust (
    lib.fileset.toSource {
      root = ../.;
      fileset = sources;
    }
  );
  cargoLock.lockFile = ../Cargo.lock;

  cargoBuildFlags = [
    "--package"
    (if program == "orch" then "orch-cli" else program)
  ];

  doCheck = runTests;
  cargoTestFlags = [ "--workspace" ];

  nativeBuildInputs = [ installShellFiles ] ++ lib.optional (nodeProgram != null) makeBinaryWrapper;

  # The binary writes its own completions and manual, so they cannot lag behind it. A cross build cannot run it.
  postInstall =
    lib.optionalString (program == "orch" && stdenv.buildPlatform.canExecute stdenv.hostPlatform)
      ''
        installShellCompletion --cmd orch \
          --bash <("$out/bin/orch" completions bash) \
          --fish <("$out/bin/orch" completions fish) \
          --zsh <("$out/bin/orch" completions zsh)

        mkdir man-pages
        "$out/bin/orch" man man-pages
        installManPage man-pages/*
      '';

  postFixup = lib.optionalString (nodeProgram != null) ''
    wrapProgram "$out/bin/orch" --set-default ORCH_NODE ${lib.getExe nodeProgram}
  '';

  meta = {
    inherit (package) description;
    license = with lib.licenses; [
      mit
      asl20
    ];
    mainProgram = program;
    platforms = lib.platforms.linux;
  };
}
