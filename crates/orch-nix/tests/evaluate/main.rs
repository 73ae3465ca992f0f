//! What an evaluator promises, with a real Nix and a library that is as small as one can be.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

#[path = "../common/mod.rs"]
mod common;

mod failures;
mod hostile;
mod kept;
mod many;
mod scene;
