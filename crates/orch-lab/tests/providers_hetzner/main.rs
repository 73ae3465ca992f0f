//! The provider for Hetzner Cloud against the lab's, over TLS, with servers that exist on paper.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "also the helpers of a test may fail it"
)]

mod ahead;
mod beside;
mod cells;
mod making;
mod novelty;
mod patience;
mod project;
mod promises;
