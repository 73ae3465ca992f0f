//! The way to nodes that run an SSH server, whoever hosts them.
//!
//! Who wants to reach nodes says by a [`Wayfinder`] which hops lead there and which host key each hop was made with;
//! the rest is here: one generated `ssh_config` for each [`Ssh`], one connection for each hop, shared by everybody,
//! and strict host keys from the first packet. The program that speaks the protocol is the `ssh` of this machine, so
//! whatever works with the generated configuration works the same way for `scp` and `nix copy`.

mod client;
mod config;
mod connection;
mod door;
mod doors;
mod folder;
mod fresh;
mod kept;
mod keys;
mod master;
mod pool;
mod quote;
mod refusal;
mod road;
mod roster;
mod settings;
mod transport;
mod tunnel;
mod way;

pub use client::Ssh;
pub use connection::Connection;
pub use keys::{KeyError, ensure_identity, make_host_key};
pub(crate) use refusal::{chain, tail};
pub use settings::{SshSettings, Whereabouts};
pub use tunnel::Tunnel;
pub use way::{Hop, Way, Wayfinder};
