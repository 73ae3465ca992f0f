//! Secrets on a node: brought sealed, kept sealed, in clear in memory alone, and gone when nobody asks for them.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

#[path = "../common/mod.rs"]
mod common;

mod bringing;
mod cuts;
mod disk;
mod placing;
mod removing;
mod silence;
mod starting;
mod system;
