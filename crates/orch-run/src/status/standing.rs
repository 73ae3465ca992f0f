//! How one node fares.

use orch_model::{HealthReport, HostName, Identity, Node, NodeName, NodeRecord, ResourceReport};
use orch_plan::{Applied, Leftover, MachineState};
use serde::Serialize;

use super::inspect::Inspected;
use crate::doors::Presence;

/// How one node fares.
#[derive(Debug, Clone, Serialize)]
pub struct NodeStanding {
    /// The node.
    pub identity: Identity,
    /// How it fares, in a word.
    pub condition: NodeCondition,
    /// Whether its machine is there and runs.
    pub state: NodeState,
    /// Which configuration it has.
    pub config: ConfigState,
    /// What `create` would do about it, as its plan says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// What differs on the node from its configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<ResourceReport>,
    /// What its configuration asks for and this kind of node cannot have. Nothing is amiss with that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<ResourceReport>,
    /// Every health check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<HealthReport>,
    /// What the server knows of it, where it fetches its configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull: Option<NodeRecord>,
    /// Why it could not be asked, where it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The last lines of what tells more about that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What to try about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl NodeStanding {
    /// The worst that is known of it.
    pub(super) fn judged(&self) -> NodeCondition {
        match self.state {
            NodeState::Missing => return NodeCondition::Missing,
            NodeState::Stranger => return NodeCondition::Stranger,
            NodeState::Stopped => return NodeCondition::Stopped,
            NodeState::Partial => return NodeCondition::Unfinished,
            NodeState::Unseen => return NodeCondition::Unseen,
            NodeState::Running | NodeState::Doubled => {}
        }
        if self.why.is_some() {
            NodeCondition::Unreachable
        } else if self.health.iter().any(|check| !check.healthy) {
            NodeCondition::Unhealthy
        } else if self.pull.as_ref().is_some_and(|record| record.alarm.is_some()) {
            NodeCondition::Alarmed
        } else if !self.drift.is_empty() {
            NodeCondition::Drifted
        } else if !self.differs.is_empty() {
            NodeCondition::Differs
        } else {
            NodeCondition::AsWanted
        }
    }
}

/// How a node fares, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeCondition {
    /// It is what it should be.
    AsWanted,
    /// Something on it was changed since it was configured.
    Drifted,
    /// The files ask for something else by now.
    Differs,
    /// Somebody else may have its tokens.
    Alarmed,
    /// A health check does not pass.
    Unhealthy,
    /// It runs, and cannot be asked.
    Unreachable,
    /// It is switched off.
    Stopped,
    /// An interrupted run began to make it.
    Unfinished,
    /// It does not exist.
    Missing,
    /// It does not exist, and another's machine has its name.
    Stranger,
    /// Its host cannot be looked at.
    Unseen,
}

impl NodeCondition {
    /// What it says, in a word or two.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AsWanted => "as wanted",
            Self::Drifted => "drifted",
            Self::Differs => "differs",
            Self::Alarmed => "alarm",
            Self::Unhealthy => "unhealthy",
            Self::Unreachable => "unreachable",
            Self::Stopped => "stopped",
            Self::Unfinished => "unfinished",
            Self::Missing => "missing",
            Self::Stranger => "stranger",
            Self::Unseen => "unseen",
        }
    }

    /// Whether nobody can use it.
    pub const fn is_broken(self) -> bool {
        !matches!(self, Self::AsWanted | Self::Drifted | Self::Differs | Self::Alarmed)
    }
}

/// Whether a node's machine is there and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// It runs.
    Running,
    /// It is switched off.
    Stopped,
    /// An interrupted run began to make it.
    Partial,
    /// Several machines bear its mark.
    Doubled,
    /// There is none.
    Missing,
    /// There is none, and another's machine has its name.
    Stranger,
    /// Its host cannot be looked at.
    Unseen,
}

impl NodeState {
    pub(super) const fn of(presence: Presence<'_>) -> Self {
        match presence {
            Presence::Machine(machine) => match machine.state {
                MachineState::Running => Self::Running,
                MachineState::Stopped => Self::Stopped,
                MachineState::Partial => Self::Partial,
            },
            Presence::Several => Self::Doubled,
            Presence::Stranger(_) => Self::Stranger,
            Presence::Nothing => Self::Missing,
            Presence::Unseen => Self::Unseen,
        }
    }
}

/// Which configuration a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigState {
    /// The wanted one.
    Current,
    /// Another one.
    Other,
    /// None yet.
    Never,
    /// That is not known.
    Unknown,
    /// It is to have none.
    Unwanted,
}

impl ConfigState {
    /// What the node itself says counts before what its host says.
    pub(super) fn of(node: &Node, presence: Presence<'_>, inspected: Option<&Inspected>) -> Self {
        let Some(config) = &node.config else {
            return Self::Unwanted;
        };
        let by_host = match presence {
            Presence::Machine(machine) => machine.applied,
            _ => Applied::Unknown,
        };
        let applied = match inspected {
            Some(Inspected::Seen(inspection)) => inspection.applied.map_or(Applied::Never, Applied::Digest),
            _ => by_host,
        };
        match applied {
            Applied::Digest(digest) if digest == config.digest() => Self::Current,
            Applied::Digest(_) => Self::Other,
            Applied::Never => Self::Never,
            Applied::Unknown => Self::Unknown,
        }
    }
}

/// A machine of this manifest that it no longer describes.
#[derive(Debug, Clone, Serialize)]
pub struct LeftBehind {
    /// The node that it was.
    pub node: NodeName,
    /// The host that it is on.
    pub host: HostName,
    /// The name that people see.
    pub machine: String,
}

impl LeftBehind {
    pub(super) fn of(leftover: &Leftover) -> Self {
        Self {
            node: leftover.identity.node.clone(),
            host: leftover.identity.host.clone(),
            machine: leftover.machine.name.clone(),
        }
    }
}
