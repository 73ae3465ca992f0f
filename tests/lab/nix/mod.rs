//! NixOS systems on nodes of this computer: evaluated, built, copied, switched to, confirmed and taken back, with a real Nix on
//! both sides and stand-ins for what nixpkgs would make.

mod drivers;
mod hostile;
mod hosts;
mod itself;
mod life;
mod scene;
mod strangers;
mod truth;
