//! Nodes that fetch their configuration themselves, as whoever drives a run sees them.

use async_trait::async_trait;
use orch_model::pull::Enrolment;
use orch_model::{Identity, Mode, NodeRecord, SpecName};
use thiserror::Error;

use crate::permit::Permit;
use crate::transport::{Target, TransportError};

/// Knows the nodes that fetch their configuration themselves: what they need for it, and what they said.
#[async_trait]
pub trait Registry: Send + Sync {
    /// What a node is given so that it can fetch its configuration. Each time it is a new token, which puts an end to those
    /// before once it is used.
    async fn enrol(&self, node: &Identity, spec: &SpecName, mode: Mode) -> Result<Enrolment, RegistryError>;

    /// Hands a node that is there already what it needs, and has it fetch its configuration now.
    async fn hand_over(&self, target: &Target, spec: &SpecName, permit: &Permit)
    -> Result<(), RegistryError>;

    /// What is known of a node. With a number of events, waits a while until there are others.
    async fn record(&self, node: &Identity, after: Option<u64>) -> Result<NodeRecord, RegistryError>;

    /// Forgets a node that is no more: whatever it was given is worthless from now on.
    async fn forget(&self, node: &Identity) -> Result<(), RegistryError>;

    /// Has a node converge now, if it listens, or when it next does.
    async fn converge(&self, node: &Identity) -> Result<(), RegistryError>;
}

/// Why nothing can be found out about nodes that fetch their configuration.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// There is no server for them.
    #[error("there is no server that nodes of host `{host}` could fetch from")]
    NoServer {
        /// The host.
        host: String,
    },
    /// What a node needs cannot be made.
    #[error("what node `{node}` needs to fetch its configuration cannot be made: {why}")]
    NotEnrolled {
        /// The node.
        node: Identity,
        /// Why not.
        why: String,
    },
    /// It cannot be handed to the node.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server does not answer.
    #[error("the server does not answer: {0}")]
    Silent(String),
}

impl RegistryError {
    /// Whether asking again could help.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Silent(_) => true,
            Self::Transport(error) => error.is_passing(),
            Self::NoServer { .. } | Self::NotEnrolled { .. } => false,
        }
    }

    /// What to try next.
    pub fn hint(&self) -> String {
        match self {
            Self::NoServer { host } => {
                format!(
                    "run `orch serve` where its nodes can reach it, and say so by `server_url` in `hosts/{host}.yaml`"
                )
            }
            Self::Transport(error) => error.hint(),
            Self::NotEnrolled { .. } => "see whether the state directory can be written and has room".into(),
            Self::Silent(_) => "see whether `orch serve` runs, and run again".into(),
        }
    }
}
