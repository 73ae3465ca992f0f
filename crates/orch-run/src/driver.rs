//! The driver at work: what the runs of one command share, under one set of locks.

use std::sync::Arc;

use orch_dag::{Control, Hooks};
use orch_plan::{Observed, Plan};

use crate::doors::Doors;
use crate::journal::{JournalFileError, RunId, RunJournal, StepValue};
use crate::observe::observe;
use crate::permit::Permit;
use crate::provider::Places;
use crate::registry::Registry;
use crate::report::Report;
use crate::runner::{Herald, Means, Patience, Watch, run};
use crate::state_dir::StateDir;
use crate::treasury::Treasury;

/// What the runs of one command share.
#[derive(Clone)]
pub struct Driver {
    /// Where journals go.
    pub state: StateDir,
    /// The hosts.
    pub places: Places,
    /// Leave to change them.
    pub permit: Permit,
    /// The ways into nodes.
    pub doors: Doors,
    /// Who knows the nodes that fetch their configuration themselves, where there are any.
    pub registry: Option<Arc<dyn Registry>>,
    /// Who can open the secrets of the site.
    pub treasury: Arc<dyn Treasury>,
    /// How runs are stopped from outside.
    pub control: Control,
    /// Who is told while a run goes on.
    pub hooks: Arc<dyn Hooks<StepValue>>,
    /// Who is told what a step is doing while it does it.
    pub watch: Watch,
    /// Who is told what concerns a run as a whole.
    pub herald: Herald,
    /// How long things are waited for.
    pub patience: Patience,
}

impl Driver {
    /// Looks at every host.
    pub async fn look(&self) -> Observed {
        observe(&self.places, self.patience.look).await
    }

    /// Carries a plan out as a run of this name: its journal is begun, and nothing is touched where it cannot be.
    pub async fn run(&self, name: RunId, plan: &Plan) -> Result<Report, JournalFileError> {
        let journal = RunJournal::begin(&self.state, name, plan).await?;
        let means = Means {
            places: self.places.clone(),
            permit: self.permit.clone(),
            doors: self.doors.clone(),
            registry: self.registry.clone(),
            treasury: Arc::clone(&self.treasury),
            journal: Arc::new(journal),
            control: self.control.clone(),
            hooks: Arc::clone(&self.hooks),
            watch: Arc::clone(&self.watch),
            herald: Arc::clone(&self.herald),
            patience: self.patience.clone(),
        };
        Ok(run(plan, means).await)
    }
}
