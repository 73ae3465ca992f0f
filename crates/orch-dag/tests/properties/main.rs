//! What holds for every plan: random graphs, outcomes, guards and limits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "also the helpers of a test may fail it")]

mod cuts;
mod model;
mod order;
mod spec;
mod statuses;
mod trial;

use proptest::test_runner::Config;

/// Cases are small and many; a failing one is shrunk and printed, and then belongs into a test of its own.
fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}
