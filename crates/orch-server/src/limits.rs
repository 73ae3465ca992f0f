//! How much the server takes, and how long it waits.

use std::time::Duration;

/// How much the server takes, and how long it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there are at once.
    pub connections: usize,
    /// How many of them may wait for something to happen.
    pub waiting: usize,
    /// How many bytes of a body are read.
    pub body: usize,
    /// How long the head or the body of a request may take to arrive, and a handshake.
    pub read: Duration,
    /// How long an answer may lie there without any of it being taken.
    pub write: Duration,
    /// How long somebody who waits is kept waiting.
    pub wait: Duration,
    /// How long a connection lives at most.
    pub life: Duration,
    /// How long what is under way may take when the server ends.
    pub goodbye: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 2048,
            waiting: 1024,
            body: 1 << 20,
            read: Duration::from_secs(10),
            write: Duration::from_secs(10),
            wait: Duration::from_secs(50),
            life: Duration::from_mins(5),
            goodbye: Duration::from_secs(5),
        }
    }
}
