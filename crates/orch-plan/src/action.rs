//! One thing to do to one machine. Names, sizes and places are in it: nothing is left to choose.

use alloc::string::String;

use orch_model::{Config, Mode, NodeKind, NodeName, Size};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One thing to do. Each is idempotent: after a crash it is simply done again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Action {
    /// Make a machine that is not there.
    Create {
        /// What it is to be.
        machine: MachineSpec,
    },
    /// Finish a machine that an interrupted run began to make.
    Adopt {
        /// The machine that is there.
        found: MachineRef,
        /// What it is to be.
        machine: MachineSpec,
    },
    /// Change the size of a machine in place.
    Resize {
        /// The machine.
        machine: MachineRef,
        /// Its size now.
        from: Size,
        /// Its size afterwards.
        to: Size,
    },
    /// Switch on a machine that is off.
    Start {
        /// The machine.
        machine: MachineRef,
    },
    /// Make the machine's configuration true.
    Configure {
        /// The machine, where it was there before; else it is the one that the action before this makes.
        machine: Option<MachineRef>,
        /// What it becomes.
        config: Config,
        /// Who brings it there.
        mode: Mode,
    },
    /// Take a machine down and everything that belongs to it.
    Destroy {
        /// The machine.
        machine: MachineRef,
    },
}

impl Action {
    /// The verb, as in journals and reports.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Adopt { .. } => "adopt",
            Self::Resize { .. } => "resize",
            Self::Start { .. } => "start",
            Self::Configure { .. } => "configure",
            Self::Destroy { .. } => "destroy",
        }
    }

    /// The machine that must be found again before it is touched; one that this plan makes is not there yet.
    pub const fn machine(&self) -> Option<&MachineRef> {
        match self {
            Self::Adopt { found: machine, .. }
            | Self::Resize { machine, .. }
            | Self::Start { machine }
            | Self::Destroy { machine } => Some(machine),
            Self::Configure { machine, .. } => machine.as_ref(),
            Self::Create { .. } => None,
        }
    }
}

/// A machine that was observed: where it was seen, and the mark that it must still bear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRef {
    /// The provider's own id.
    pub id: String,
    /// The name that people see.
    pub name: String,
    /// Our mark on it.
    pub uuid: Uuid,
}

/// What a machine is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineSpec {
    /// The name that people see.
    pub name: String,
    /// What kind of machine it is.
    pub kind: NodeKind,
    /// What it is made from.
    pub image: String,
    /// How large it is.
    pub size: Size,
    /// Its VMID, on hosts that have such.
    pub vmid: Option<u32>,
    /// The node that it lives on; without one it lives on the host.
    pub parent: Option<NodeName>,
}
