//! A program run on a node, by whatever way leads there.

use std::time::Duration;

use async_trait::async_trait;
use orch_run::{Ended, TransportError};
use tokio::process::Command;

/// A node that programs can be run on.
#[async_trait]
pub trait Remote: Send + Sync {
    /// Runs `argv` on the node without a shell in between, gives it `input` on standard input, and waits for its end for
    /// at most `limit`. A program that ends with any code is an `Ok`.
    async fn run(
        &self,
        argv: &[String],
        who: RunAs,
        input: &[u8],
        limit: Duration,
    ) -> Result<Ended, TransportError>;
}

/// A node that another program of this machine can be connected to: what that one writes, a program there reads.
pub trait Bridge: Remote {
    /// What is run here to have `argv` run on the node as root, with the same input, output and errors. It is in a process
    /// group of its own, and ends with whoever waits for it.
    fn bridge(&self, argv: &[String]) -> Result<Command, TransportError>;
}

/// As whom a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAs {
    /// As root, whatever account the connection is made with.
    Root,
    /// As the account that the connection is made with.
    Itself,
}
