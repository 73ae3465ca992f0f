//! What is there: the machines of each host, as a provider saw them.
//!
//! Plain data, so that a plan can be made from a recorded state as well as from a fresh look.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use orch_model::{Digest, HostName, Identity, ManifestName, NodeKeys, NodeKind, NodeName, SiteName, Size};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What is there, by host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// What each host shows.
    pub hosts: BTreeMap<HostName, HostView>,
}

/// What one host shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HostView {
    /// It answered.
    Seen {
        /// Every machine on it, ours and strangers', nested ones included.
        machines: Vec<Machine>,
        /// What can be changed on a machine without making it anew.
        #[serde(default)]
        abilities: Abilities,
    },
    /// It did not answer; nothing is known, so nothing on it is touched.
    Unreachable {
        /// Why not.
        why: String,
    },
}

impl HostView {
    /// A host without machines.
    pub const fn empty() -> Self {
        Self::Seen { machines: Vec::new(), abilities: Abilities::ALL }
    }

    /// The machines, or none where the host did not answer.
    pub fn machines(&self) -> &[Machine] {
        match self {
            Self::Seen { machines, .. } => machines,
            Self::Unreachable { .. } => &[],
        }
    }
}

/// A machine as its provider shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The provider's own id.
    pub id: String,
    /// The name that people see. Names decide nothing.
    pub name: String,
    /// Whose it is; a machine without our marks is a stranger's.
    #[serde(default)]
    pub marks: Option<Marks>,
    /// The machine that it lives on, by the provider's id; without one it lives on the host.
    #[serde(default)]
    pub inside: Option<String>,
    /// Whether it runs.
    pub state: MachineState,
    /// How large it is.
    pub size: Size,
    /// What kind of machine it is, where the provider can tell.
    #[serde(default)]
    pub kind: Option<NodeKind>,
    /// What it was made from, where the provider can tell.
    #[serde(default)]
    pub image: Option<String>,
    /// Its VMID, where it has one.
    #[serde(default)]
    pub vmid: Option<u32>,
    /// Which configuration it has.
    #[serde(default)]
    pub applied: Applied,
    /// By what it is known.
    #[serde(default)]
    pub keys: Keys,
}

/// Whose a machine is, as written on it when it was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// The site that owns it.
    pub site: SiteName,
    /// The manifest that describes it.
    pub manifest: ManifestName,
    /// Its name there.
    pub node: NodeName,
    /// The host that it was placed on.
    pub host: HostName,
    /// Made at create; what a later run must find again before it changes or destroys the machine.
    pub uuid: Uuid,
}

impl Marks {
    /// The node that the machine is.
    pub fn identity(&self) -> Identity {
        Identity { manifest: self.manifest.clone(), node: self.node.clone(), host: self.host.clone() }
    }

    /// Whether the machine is that node of that site.
    pub fn is_of(&self, site: &SiteName, identity: &Identity) -> bool {
        self.site == *site
            && self.node == identity.node
            && self.manifest == identity.manifest
            && self.host == identity.host
    }
}

/// Whether a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineState {
    /// It runs.
    Running,
    /// It is switched off.
    Stopped,
    /// An interrupted run began to make it.
    Partial,
}

/// Which configuration a machine has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Applied {
    /// That cannot be told from outside.
    #[default]
    Unknown,
    /// None yet.
    Never,
    /// The one with this digest.
    Digest(Digest),
}

/// By what a machine is known: keys that it made itself, and said over a connection that could be trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keys {
    /// That cannot be told from outside.
    #[default]
    Unknown,
    /// It has not said yet.
    Awaited,
    /// These. Until they are settled, the key that it was made with is believed too.
    Known(NodeKeys),
}

impl Keys {
    /// Whether it is still to be made known by its own keys.
    pub fn are_awaited(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Awaited => true,
            Self::Known(keys) => !keys.settled,
        }
    }

    /// The keys, where they are known.
    pub const fn known(&self) -> Option<&NodeKeys> {
        match self {
            Self::Known(keys) => Some(keys),
            Self::Unknown | Self::Awaited => None,
        }
    }
}

/// What can be changed on a machine without making it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abilities {
    /// Processor cores.
    pub cores: bool,
    /// Memory.
    pub memory: bool,
    /// Disk.
    pub disk: DiskAbility,
}

impl Abilities {
    /// Everything can be changed in place.
    pub const ALL: Self = Self { cores: true, memory: true, disk: DiskAbility::Any };
    /// What hypervisors commonly can: a disk grows and never shrinks.
    pub const COMMON: Self = Self { cores: true, memory: true, disk: DiskAbility::Grow };

    /// Whether a disk can go from one size to another in place.
    pub(crate) fn can_change_disk(self, from: u32, to: u32) -> bool {
        match self.disk {
            DiskAbility::Fixed => false,
            DiskAbility::Grow => to > from,
            DiskAbility::Any => true,
        }
    }

    /// As near to the wanted size as a machine can come in place.
    pub(crate) fn reachable(self, is: Size, wanted: Size) -> Size {
        Size {
            cores: if self.cores { wanted.cores } else { is.cores },
            memory: if self.memory { wanted.memory } else { is.memory },
            disk: if self.can_change_disk(is.disk, wanted.disk) { wanted.disk } else { is.disk },
        }
    }
}

impl Default for Abilities {
    fn default() -> Self {
        Self::COMMON
    }
}

/// How a disk can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskAbility {
    /// Not at all.
    Fixed,
    /// It can grow.
    Grow,
    /// It can grow and shrink.
    Any,
}
