//! Where nodes live, and the way to them.
//!
//! A provider decides nothing that the plan did not. [`local`] makes real machines out of this one; [`ssh`] is the way
//! to any node that runs an SSH server, whoever hosts it.

pub mod api;
pub mod cloud;
mod exec;
mod finish;
mod ground;
mod heard;
pub mod hetzner;
pub mod local;
pub mod proxmox;
pub mod push;
pub mod remote;
pub mod ssh;

pub use ground::{Base, Ground, GroundError, Obstacle, Preflight};
