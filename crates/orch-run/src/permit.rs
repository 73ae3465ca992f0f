//! Leave to change the world. Whatever changes it asks for one; a dry run has none to give.

use std::sync::Arc;

use orch_model::HostName;

use crate::lock::HostLocks;

/// Leave to change the hosts whose locks are held. It can be had from held locks only, and the locks are held for as
/// long as a copy of it exists.
#[derive(Debug, Clone)]
pub struct Permit {
    locks: Arc<HostLocks>,
}

impl Permit {
    /// Turns held locks into leave to change what they guard.
    pub fn under(locks: HostLocks) -> Self {
        Self { locks: Arc::new(locks) }
    }

    /// Whether it is leave to change this host: its lock is among those that are held.
    pub fn covers(&self, host: &HostName) -> bool {
        self.locks.hosts().contains(host)
    }
}
