//! The lab: whole lives of machines on this computer, with real namespaces, real disks and, where there is one, a real
//! SSH server.
//!
//! Each test has a site and a state directory of its own, and leaves nothing, also when it is killed. A part that this
//! computer does not have is said to be skipped, with the reason.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod clouds;
mod common;
mod conformance;
mod faces;
mod faults;
mod image;
mod kept;
mod kill;
mod nix;
mod not_root;
mod outside;
mod pull;
mod secrets;
mod shapes;
mod systems;
mod verbs;
