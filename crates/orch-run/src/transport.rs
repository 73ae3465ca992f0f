//! The way to a node: how a configuration gets there, whoever hosts it.

use std::ffi::OsString;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::pull::Enrolment;
use orch_model::system::Inventory;
use orch_model::{Config, Identity, Inspection, Mode, NodeKeys};
use thiserror::Error;
use uuid::Uuid;

use crate::permit::Permit;
use crate::progress::Progress;

/// The way to the nodes of a host.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Makes `config` true on the node. Idempotent; a second time changes nothing.
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError>;

    /// Has the node show its own SSH host key from now on, and put the one away that it was made with. Idempotent. Asked of
    /// those only that said they have not done so yet.
    async fn settle(&self, target: &Target, permit: &Permit) -> Result<NodeKeys, TransportError> {
        target.needs(permit)?;
        let why = "nobody here can have it put away the key that it was made with".into();
        Err(TransportError::Unasked { node: target.identity.clone(), why })
    }
}

/// The way to nodes that are there and are to fetch their configuration themselves.
#[async_trait]
pub trait Enroller: Send + Sync {
    /// Hands a node what it needs for that, and has it do so now.
    async fn enrol(
        &self,
        target: &Target,
        enrolment: &Enrolment,
        permit: &Permit,
    ) -> Result<(), TransportError>;
}

/// The way into a node for those who look around in it, and for what people do there by hand: that is theirs to answer
/// for. Nothing here is part of a run, so nothing needs a permit.
#[async_trait]
pub trait Door: Send + Sync {
    /// Says what differs on the node from `config`, and whether it is healthy. Changes nothing.
    async fn inspect(&self, target: &Target, config: &Config) -> Result<Inspection, TransportError>;

    /// Says what the NixOS system is made of that the node runs; one that runs none fails. Changes nothing.
    async fn inventory(&self, target: &Target) -> Result<Inventory, TransportError>;

    /// Runs a program on the node, without a shell in between, and waits for its end for at most `limit`.
    async fn exec(&self, target: &Target, argv: &[String], limit: Duration) -> Result<Ended, TransportError>;

    /// The command line that opens a session on the node, or runs `argv` in one; to be run in place of this program.
    fn session(&self, target: &Target, argv: &[String]) -> Result<Vec<OsString>, TransportError>;

    /// An `ssh_config` with which ordinary tools reach these nodes by their names. Nothing where they have no SSH.
    fn ssh_config(&self, targets: &[Target]) -> Result<Option<String>, TransportError>;
}

/// How a program on a node ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
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
    /// Whom to tell what is being done.
    pub progress: Progress,
}

impl Target {
    /// Refuses to change the node without leave to change its host.
    pub fn needs(&self, permit: &Permit) -> Result<(), TransportError> {
        if permit.covers(&self.identity.host) {
            return Ok(());
        }
        let why = "the lock of its host is not held".into();
        Err(TransportError::Failed { node: self.identity.clone(), why, evidence: Vec::new() })
    }
}

/// What became of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// Whether something on the node was changed.
    pub changed: bool,
    /// What is worth telling though it succeeded: what was skipped, and why.
    pub notes: Vec<String>,
    /// By what the node is known, where it said so.
    pub keys: Option<NodeKeys>,
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
        /// The last lines of what tells more.
        evidence: Vec<String>,
    },
    /// It was waited for until the time was over.
    #[error("node `{node}` did not answer in time: {why}")]
    Silent {
        /// The node.
        node: Identity,
        /// What was seen instead.
        why: String,
        /// The last lines of what tells more.
        evidence: Vec<String>,
    },
    /// It was at it when its time was over.
    #[error("node `{node}` did not get done in time: {why}")]
    Late {
        /// The node.
        node: Identity,
        /// What was seen instead.
        why: String,
        /// The last lines of what tells more.
        evidence: Vec<String>,
    },
    /// It was not even asked: what was to be said to it, or the way to it, makes no sense.
    #[error("node `{node}` was not asked: {why}")]
    Unasked {
        /// The node.
        node: Identity,
        /// Why not.
        why: String,
    },
    /// It answers, and does not let us in.
    #[error("node `{node}` cannot be entered: {why}")]
    Denied {
        /// The node.
        node: Identity,
        /// What was seen instead.
        why: String,
        /// The last lines of what tells more.
        evidence: Vec<String>,
    },
    /// Another machine answers in its place: its key is not the one that was pinned.
    #[error("node `{node}` does not have the host key that it was made with, and is not spoken to: {why}")]
    Impostor {
        /// The node.
        node: Identity,
        /// What was seen instead.
        why: String,
    },
    /// Its new system can only be booted into, and nothing was changed.
    #[error("node `{node}` needs a reboot for {why}, and was left as it is; {read}")]
    NeedsReboot {
        /// The node.
        node: Identity,
        /// What a reboot is needed for.
        why: String,
        /// What was read of it.
        read: String,
    },
    /// It was reached and could not make the configuration true.
    #[error("node `{node}` could not apply its configuration: {why}")]
    Failed {
        /// The node.
        node: Identity,
        /// What it said.
        why: String,
        /// The last lines of what tells more.
        evidence: Vec<String>,
    },
}

impl TransportError {
    /// Whether asking again could help.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Whether a time limit was the cause.
    pub const fn is_late(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::Late { .. })
    }

    /// The last lines of what tells more.
    pub fn evidence(&self) -> &[String] {
        match self {
            Self::Unreachable { evidence, .. }
            | Self::Silent { evidence, .. }
            | Self::Late { evidence, .. }
            | Self::Denied { evidence, .. }
            | Self::Failed { evidence, .. } => evidence,
            Self::Impostor { .. } | Self::Unasked { .. } | Self::NeedsReboot { .. } => &[],
        }
    }

    /// What to try next.
    pub fn hint(&self) -> String {
        match self {
            Self::Silent { node, .. } => format!(
                "see what `{node}` is doing, and run again; `settings.timeouts.boot` in the manifest gives it more time"
            ),
            Self::Late { node, .. } => format!(
                "see what takes `{node}` so long, and run again; `settings.timeouts.config` in the manifest gives it more time"
            ),
            Self::Denied { node, .. } => format!(
                "see whether `{node}` still knows the key and the account that orch comes in with; `destroy` and `create` give it new ones"
            ),
            Self::Unasked { .. } => "mend what is said to be wrong here, and run again".into(),
            Self::Unreachable { node, .. } => {
                format!("see whether `{node}` is up and its network works, and run again")
            }
            Self::Impostor { node, .. } => format!(
                "find out who answers as `{node}`; if you changed its key yourself, `destroy` and `create` it anew"
            ),
            Self::NeedsReboot { .. } => "`--reboot` has it booted into its new system".into(),
            Self::Failed { node, .. } => {
                format!("mend the spec of `{node}` or what stands in its way, and run again")
            }
        }
    }
}
