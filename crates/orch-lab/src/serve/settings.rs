//! How an API is served.

use std::time::Duration;

use crate::faults::Faults;

/// How an API is served.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// What goes wrong on purpose around the API.
    pub faults: Faults,
    /// How long every question takes longer than it would.
    pub latency: Duration,
    /// No question is larger.
    pub largest_body: usize,
    /// How long others may take to say that they speak TLS.
    pub handshake: Duration,
    /// How long a connection may take to come to its end once the API ends.
    pub goodbye: Duration,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            faults: Faults::default(),
            latency: Duration::ZERO,
            // Small images are uploaded.
            largest_body: 64 << 20,
            handshake: Duration::from_secs(10),
            goodbye: Duration::from_millis(500),
        }
    }
}
