{
  mkShell,
  cargo,
  clippy,
  rust-analyzer,
  rustc,
  rustfmt,
}:

mkShell {
  packages = [
    cargo
    clippy
    rust-analyzer
    rustc
    rustfmt
  ];
}
