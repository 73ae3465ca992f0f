//! Leave to change the world. Whatever changes it asks for one; a dry run has none to give.

use std::sync::Arc;

use crate::lock::HostLocks;

/// Leave to change the hosts whose locks are held. It can be had from held locks only, and the locks are held for as
/// long as a copy of it exists.
#[derive(Debug, Clone)]
pub struct Permit {
    _locks: Arc<HostLocks>,
}

impl Permit {
    /// Turns held locks into leave to change what they guard.
    pub fn under(locks: HostLocks) -> Self {
        Self { _locks: Arc::new(locks) }
    }
}
