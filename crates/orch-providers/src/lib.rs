//! Where nodes live, and the way to them.
//!
//! A provider decides nothing that the plan did not. [`local`] makes real machines out of this one, [`proxmox`] and
//! [`hetzner`] speak to APIs elsewhere; [`ssh`] is the way to any node that runs an SSH server, whoever hosts it.

pub mod api;
pub mod cloud;
mod exec;
mod finish;
mod ground;
mod heard;
pub mod hetzner;
mod host_shell;
mod host_system;
pub mod local;
mod nested;
mod preflight;
pub mod proxmox;
pub mod push;
pub mod remote;
pub mod rollout;
pub mod ssh;
mod stead;

pub use ground::{Base, Ground, GroundError, Premises};
pub use preflight::{Cost, Obstacle, Preflight, Wanted};
pub use stead::{Stead, Steads};
