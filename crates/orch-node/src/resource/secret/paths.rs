//! The paths at which orch has put secrets, in `/var/lib/orch/secrets.json`: no more than that is known of them.

use std::collections::BTreeSet;

use orch_model::NodePath;
use serde::{Deserialize, Serialize};

use crate::error::ApplyError;
use crate::state::State;

const NAME: &str = "secrets.json";

/// The paths at which orch has put secrets.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Paths {
    pub(super) paths: BTreeSet<NodePath>,
}

impl Paths {
    pub(super) fn read(state: &State) -> Result<Self, ApplyError> {
        Ok(state.read_json(NAME)?.unwrap_or_default())
    }

    pub(super) fn add(state: &State, path: &NodePath) -> Result<(), ApplyError> {
        let mut known = Self::read(state)?;
        if known.paths.insert(path.clone()) { state.write_json(NAME, &known) } else { Ok(()) }
    }

    /// Keeps these alone.
    pub(super) fn keep(&self, state: &State) -> Result<(), ApplyError> {
        if self.paths.is_empty() { state.remove(NAME) } else { state.write_json(NAME, self) }
    }
}
