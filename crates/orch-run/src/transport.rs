//! The way to a node: how a configuration gets there, whoever hosts it.

use async_trait::async_trait;
use orch_model::{Config, Identity, Mode};
use thiserror::Error;
use uuid::Uuid;

use crate::permit::Permit;

/// The way to the nodes of a host.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Makes `config` true on the node, or waits until the node has done so itself, as its mode says. Idempotent; a
    /// second time changes nothing.
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError>;
}

/// The node that is meant.
#[derive(Debug, Clone)]
pub struct Target {
    /// Who it is.
    pub identity: Identity,
    /// The mark of its machine.
    pub uuid: Uuid,
    /// Who brings the configuration there.
    pub mode: Mode,
}

/// What became of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Configured {
    /// Something on the node was changed.
    Changed,
    /// It was as wanted already.
    Unchanged,
}

/// Why a node could not be configured.
#[derive(Debug, Error)]
pub enum TransportError {
    /// It could not be reached, or the connection broke: whether anything happened is not known.
    #[error("node `{node}` cannot be reached: {why}")]
    Unreachable {
        /// The node.
        node: Identity,
        /// What was seen instead.
        why: String,
    },
    /// It was reached and could not make the configuration true.
    #[error("node `{node}` could not apply its configuration: {why}")]
    Failed {
        /// The node.
        node: Identity,
        /// What it said.
        why: String,
    },
}

impl TransportError {
    /// Whether asking again could help.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// What to try next.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreachable { node, .. } => {
                format!("see whether `{node}` is up and its network works, and run again")
            }
            Self::Failed { node, .. } => {
                format!("mend the spec of `{node}` or what stands in its way, and run again")
            }
        }
    }
}
