//! A node that fetches its configuration, from a server that a test can spoil.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

#[path = "../common/mod.rs"]
mod common;
mod cuts;
mod fetching;
mod keeping;
mod node;
mod refusals;
mod secrets;
mod server;
