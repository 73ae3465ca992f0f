//! Leave to change the world. Whatever changes it asks for one; a dry run has none to give.

use std::sync::Arc;

use orch_model::{HostName, Identity};
use uuid::Uuid;

use crate::lock::HostLocks;
use crate::tenure::Tenure;

/// Leave to change the hosts whose locks are held. It can be had from held locks only, and the locks are held for as
/// long as a copy of it exists.
#[derive(Debug, Clone)]
pub struct Permit {
    locks: Arc<HostLocks>,
    claim: Arc<str>,
    reboots: bool,
    tenure: Arc<Tenure>,
}

impl Permit {
    /// Turns held locks into leave to change what they guard.
    pub fn under(locks: HostLocks) -> Self {
        // The name of a run is its own among those of one state directory only, and a node knows drivers that share none.
        let claim = format!("{}-{}", locks.run(), &Uuid::new_v4().simple().to_string()[..8]);
        Self { locks: Arc::new(locks), claim: claim.into(), reboots: false, tenure: Arc::default() }
    }

    /// Whether it is leave to change this host: its lock is among those that are held.
    pub fn covers(&self, host: &HostName) -> bool {
        self.locks.hosts().contains(host)
    }

    /// By what nodes know whoever has it: what leases and rollouts say of their run. No other permit has the same.
    pub fn claim(&self) -> &str {
        &self.claim
    }

    /// Whether a node is its run's alone; `false` where the run had no need to ask for it. In words, why nothing may be begun on
    /// the node: another has it, or may have had it meanwhile. Whoever does something that takes long asks again before each
    /// part of it that cannot be taken back.
    pub fn holds(&self, node: &Identity) -> Result<bool, String> {
        self.tenure.holds(node)
    }

    /// What its run knows of the nodes that it asked for.
    pub(crate) fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// The same, with leave to reboot nodes where what they get needs it.
    pub fn with_reboots(mut self) -> Self {
        self.reboots = true;
        self
    }

    /// Whether it is leave to reboot nodes.
    pub const fn allows_reboots(&self) -> bool {
        self.reboots
    }
}
