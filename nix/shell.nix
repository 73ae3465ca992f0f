# What it takes to work on orch, and to run every test that this computer can run.
{
  mkShell,
  age,
  cargo,
  clippy,
  nixfmt,
  openssh,
  rust-analyzer,
  rustc,
  rustfmt,
  sops,
}:

mkShell {
  packages = [
    age
    cargo
    clippy
    nixfmt
    openssh
    rust-analyzer
    rustc
    rustfmt
    # The tests compare our reading of its files with its own.
    sops
  ];
}
