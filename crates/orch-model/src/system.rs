//! A NixOS system on its way to a node: what the driver says to the node about it, and what the node answers.
//!
//! Everything here crosses SSH as JSON, from `orch` to `orch-node system …` and back.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::files::Health;
use crate::printable::printable;
use crate::word::StorePath;

/// What is asked of a node before anything is done to it. Asking changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SystemQuestion {
    /// The closure of the system that it is to get; those of it that it lacks are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closure: Vec<StorePath>,
}

/// What a node says of its systems. Every path was read at the moment of asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemView {
    /// What it runs on, as Nix calls it: `x86_64-linux`.
    pub platform: String,
    /// The version of its Nix; none where it has none.
    pub nix: Option<String>,
    /// The system that runs, where one does. It need not lie in the store: another tool may have put it there.
    pub running: Option<String>,
    /// The system that it booted.
    pub booted: Option<String>,
    /// The system that it boots next.
    pub boot_default: Option<String>,
    /// What it lacks of the closure that was asked about.
    pub missing: Vec<StorePath>,
    /// Bytes that are free where its store is.
    pub free: u64,
    /// Whether its Nix has somewhere to fetch from.
    pub substitutes: bool,
    /// Who has it to themselves.
    pub lease: Option<Lease>,
    /// The last rollout, or the one that is under way.
    pub rollout: Option<RolloutRecord>,
}

/// Who has a node to themselves, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Who, for people: user, driver machine, process.
    pub holder: String,
    /// The run, which is what is compared.
    pub run: String,
    /// Since when, as RFC 3339.
    pub since: String,
    /// How many seconds it still holds where nobody renews it.
    pub seconds_left: u64,
}

/// Why somebody else cannot have it, wherever that is said.
impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` has had it since {}", printable(&self.holder), printable(&self.since))
    }
}

/// Asks for a node, or asks for it again; the same run may do so as often as it likes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseClaim {
    /// Who, for people.
    pub holder: String,
    /// The run.
    pub run: String,
    /// For how many seconds.
    pub seconds: u64,
}

/// What came of a claim. The view was read with the lease held, or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseAnswer {
    /// Whether the node is the claimant's.
    pub granted: bool,
    /// How the node stands.
    pub view: SystemView,
}

/// Has a node go over to another system. The order is on its disk before anything else happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchOrder {
    /// Which rollout this is. The same order again attaches to what is under way.
    pub id: String,
    /// The run that it belongs to.
    pub run: String,
    /// Whether that run has taken the node for itself: then nothing is done once it has lost it.
    #[serde(default)]
    pub leased: bool,
    /// The system to go over to. All of its closure is there.
    pub system: StorePath,
    /// What must hold afterwards.
    pub health: Vec<Health>,
    /// Whether the node may be rebooted into it, where only a boot brings all of it.
    pub reboot: bool,
    /// How long each part may take.
    pub limits: SwitchLimits,
}

/// How long the parts of a switch may take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchLimits {
    /// Activating a system, this one or the one before it.
    pub activate: u64,
    /// Until somebody confirms, counted from the end of the activation.
    pub confirm: u64,
    /// Becoming healthy.
    pub health: u64,
    /// A reboot, until the node's own programs run again.
    pub reboot: u64,
}

/// What a node wrote down of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutRecord {
    /// Which rollout.
    pub id: String,
    /// The run that it belongs to.
    pub run: String,
    /// The system that it is about.
    pub system: StorePath,
    /// The system that ran before, by its own path, whoever put it there.
    pub previous: Option<String>,
    /// What the node booted by default before.
    pub previous_default: Option<String>,
    /// How far it is.
    pub phase: RolloutPhase,
    /// Why it was taken back or given up, where it was.
    pub why: Option<String>,
    /// The last lines of what tells more, gathered before anything was taken back.
    pub evidence: Vec<String>,
    /// What a reboot would be needed for, where something is.
    pub reboot_needed: Vec<String>,
    /// When it began, as RFC 3339.
    pub since: String,
}

/// How far a rollout is. The last four are ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RolloutPhase {
    /// The watcher is there and its order is on disk.
    Armed,
    /// The new system is being activated.
    Activating,
    /// The node is on its way through a reboot into the new system.
    Rebooting,
    /// The new system runs as a test, and a confirmation is waited for.
    Waiting,
    /// It was confirmed, and is being made permanent.
    Confirmed,
    /// The node is on its way back.
    Returning,
    /// The new system runs and is what the node boots. This was read back.
    Permanent,
    /// The system before runs and is what the node boots. This was read back.
    RolledBack,
    /// The new system can only be booted into, and nothing was changed.
    NeedsReboot,
    /// Neither could be had; what is read of the node says how it stands.
    Stuck,
}

impl RolloutPhase {
    /// Whether nothing more happens by itself.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Permanent | Self::RolledBack | Self::NeedsReboot | Self::Stuck)
    }
}

/// What a node says at the end of a switch, of a confirmation, or of a way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchAnswer {
    /// How the rollout stands.
    pub record: RolloutRecord,
    /// How the node stands, read afterwards.
    pub view: SystemView,
    /// Whether its watcher is alive, where the rollout is under way.
    pub watched: bool,
    /// Health checks that do not hold, in words; none where all do.
    pub unhealthy: Vec<String>,
}

/// What a system is made of, for comparing two.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Inventory {
    /// The system.
    pub system: String,
    /// Everything that it refers to.
    pub closure: Vec<StorePath>,
    /// Units by name, each with a digest of what they say.
    pub units: alloc::collections::BTreeMap<String, String>,
    /// What only a boot changes, by name: kernel, initrd, modules, systemd.
    pub boot: alloc::collections::BTreeMap<String, String>,
}
