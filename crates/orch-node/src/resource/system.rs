//! The NixOS system of a node. A rollout brings it, with a watcher and a way back; here is only looked whether it is there.

use orch_model::StorePath;

use super::{Look, Resource};
use crate::error::ApplyError;
use crate::node::Node;
use crate::system::difference;

/// The system that a configuration evaluated to.
pub(super) struct System(StorePath);

impl System {
    pub(super) const fn new(system: StorePath) -> Self {
        Self(system)
    }
}

impl Resource for System {
    fn kind(&self) -> &'static str {
        "system"
    }

    fn name(&self) -> String {
        self.0.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        Ok(Look::of(difference(node, &self.0)))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let how = difference(node, &self.0).unwrap_or_default();
        Err(ApplyError::Impossible(format!("only a rollout can bring it, and {how}")))
    }
}
