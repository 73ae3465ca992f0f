//! Proxmox VE: machines made, changed and destroyed by its API, and the way to them.
//!
//! `call.rs`, `read.rs`, `trouble.rs` and `task.rs` are how it is spoken to; `look.rs` (with `live.rs`) is what is there; `make.rs` (with `begin.rs`
//! and `seed.rs`), `change.rs`, `power.rs` and `remove.rs` are what orders mean. A machine bears its mark from its first word on: in its
//! description while it is made, in its tags once it is. Every change verifies it, and numbers (VMIDs) decide nothing.

mod address;
mod advice;
mod begin;
mod belongings;
mod call;
mod change;
mod config;
mod guest;
mod image;
mod iso;
mod live;
mod look;
mod make;
mod maker;
mod mark;
mod pace;
mod power;
mod preflight;
mod provider;
mod read;
mod remove;
mod seed;
mod setup;
mod task;
mod trouble;
#[doc(hidden)]
pub mod untrusted;
mod way;

pub use pace::Pace;
pub use provider::Proxmox;
pub use setup::{Neighbours, ProxmoxSetup, Snippets};
