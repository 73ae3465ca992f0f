//! Every host of a request, with those who speak to it: what a command needs to look, to act and to go in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use orch_model::{Fleet, HostName};
use orch_plan::Plan;
use orch_run::{Door, Places, StateDir};
use thiserror::Error;

/// Where things are that hosts are spoken to from.
#[derive(Debug, Clone)]
pub struct Base {
    /// The driver's own folder.
    pub state: StateDir,
    /// The site's folder; paths in host files are relative to it.
    pub site: PathBuf,
}

/// Every host of a fleet, with those who speak to it.
pub struct Ground {
    /// For runs.
    pub places: Places,
    /// For looking around, and for people.
    pub doors: BTreeMap<HostName, Arc<dyn Door>>,
}

/// A host that cannot be spoken to.
#[derive(Debug, Error)]
pub enum GroundError {
    /// There is no provider for it yet.
    #[error("host `{host}` is of a kind that cannot be spoken to yet: {provider}")]
    NoProvider {
        /// The host.
        host: HostName,
        /// Its kind.
        provider: &'static str,
    },
}

/// What is said of a plan before anything is touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preflight {
    /// What stands in the way.
    pub obstacles: Vec<Obstacle>,
    /// What will be less than was asked for, though it works: a disk without a limit.
    pub caveats: Vec<String>,
}

/// One thing that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// What it is.
    pub what: String,
    /// The way out.
    pub hint: String,
}

impl Ground {
    /// Finds out who speaks to each host of a fleet. Touches nothing.
    pub fn of(_fleet: &Fleet, _base: &Base) -> Result<Self, GroundError> {
        Ok(Self { places: Places::new(), doors: BTreeMap::new() })
    }

    /// Says what would stand in the way of a plan, and what would be less than it asks for. Changes nothing.
    pub async fn preflight(&self, _plan: &Plan) -> Preflight {
        Preflight::default()
    }
}
