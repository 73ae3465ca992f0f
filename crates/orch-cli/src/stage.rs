//! Where a command acts: hosts that are locked first and looked at then, so that no plan is older than its lock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use orch_model::HostName;
use orch_plan::{Goal, Observed, Plan, Verb};
use orch_run::{Control, Driver, HostLocks, Patience, Permit, RunId};
use orch_server::{Limits, nobody};

use crate::args::Pausing;
use crate::failure::Failure;
use crate::outlook::{Outlook, fetches};
use crate::output;
use crate::scene::{Reach, Scene};
use crate::serving::{SOON, Service, Serving};
use crate::view::View;

/// How long it may take to remove what earlier runs left.
const TIDYING: Duration = Duration::from_mins(1);

/// Hosts that are locked for this command.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) reach: Reach,
    /// The name of the first run.
    pub(crate) run: RunId,
    permit: Permit,
}

impl Stage {
    /// Takes the locks of every host that the goal may touch. Does not wait for them.
    pub(crate) fn enter(scene: Scene, goal: &Goal, doing: &str) -> Result<Self, Failure> {
        let hosts = hosts(&scene, goal)?;
        let reach = scene.reach().must_cover(&hosts)?;
        let run = RunId::new();
        let doing = format!("{doing} {}", scene.fleet.manifest);
        let locks = HostLocks::take(scene.state(), &scene.fleet.site, &hosts, &run, &doing)?;
        Ok(Self { scene, reach, run, permit: Permit::under(locks) })
    }

    /// What is to be done, from a fresh look; refused where it is known before that it cannot be done.
    pub(crate) async fn plan(&self, goal: &Goal) -> Result<Plan, Failure> {
        let observed = self.scene.look_for(&self.reach, goal).await?;
        self.plan_for(goal, &observed).await
    }

    /// The same, from a look that was taken.
    pub(crate) async fn plan_for(&self, goal: &Goal, observed: &Observed) -> Result<Plan, Failure> {
        let outlook = Outlook::of(&self.scene, &self.reach, observed, goal).await?;
        output::caveats(&outlook.caveats);
        output::costs(&outlook.costs);
        outlook.objection.map_or(Ok(outlook.plan), Err)
    }

    /// Removes what interrupted runs left of machines that are gone. It is nobody's, and no reason to fail or to wait for
    /// long: where it cannot be done, the words that say so are given, and the next run tries again.
    pub(crate) async fn tidy(&self, control: &Control) -> Option<String> {
        let tidied = tokio::select! {
            tidied = self.reach.ground.tidy(&self.permit) => tidied.map_err(|error| error.to_string()),
            () = control.cancelled() => Err("it was cut off".to_owned()),
            () = tokio::time::sleep(TIDYING) => Err(format!("it took longer than {TIDYING:?}")),
        };
        tidied.err().map(|why| format!("note: what earlier runs left could not be removed: {why}\n"))
    }

    /// Serves nodes that fetch their configuration for as long as a plan is carried out that has some.
    pub(crate) fn serve(&self, plan: &Plan) -> Result<Option<Serving>, Failure> {
        if !plan.nodes.iter().any(fetches) {
            return Ok(None);
        }
        let service = Service {
            folder: self.scene.server(),
            place: self.scene.place(),
            locals: self.reach.ground.ears.clone(),
            limits: Limits::default(),
            tell: nobody(),
            look_every: SOON,
        };
        Serving::begin(service).map(Some)
    }

    /// The driver that carries plans out here, told about by `view`.
    pub(crate) fn driver(&self, view: &View, pausing: &Pausing) -> Driver {
        Driver {
            state: self.scene.state().clone(),
            places: self.reach.ground.places.clone(),
            permit: self.permit.clone(),
            doors: self.reach.ground.doors.clone(),
            registry: Some(Arc::new(self.reach.registry(&self.scene))),
            treasury: self.scene.treasury(),
            control: view.control(),
            hooks: view.hooks(),
            watch: view.watch(),
            herald: view.herald(),
            patience: Patience { pause: pausing.pause_limit.duration(), ..Patience::default() },
        }
    }
}

/// The hosts that a goal may touch. Only `destroy` takes machines down that the manifest no longer describes, and those
/// may be on any of its hosts.
pub(crate) fn hosts(scene: &Scene, goal: &Goal) -> Result<BTreeSet<HostName>, Failure> {
    if goal.verb == Verb::Destroy {
        return Ok(scene.fleet.hosts.keys().cloned().collect());
    }
    scene.hosts(&goal.only)
}
