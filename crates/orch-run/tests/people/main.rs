//! What people see of nodes and do to them: status, programs on many nodes, trials, the live view, the page of a run.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

#[path = "../common/mod.rs"]
mod common;

mod door;
mod execute;
mod live;
mod page;
mod status;
mod trial;
