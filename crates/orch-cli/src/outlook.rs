//! A plan with what is known of it before anything is touched: a run and its rehearsal see the same.

use orch_model::Mode;
use orch_plan::{Action, Goal, Observed, Plan, plan};

use crate::failure::Failure;
use crate::scene::{Reach, Scene};

/// A plan with what is known of it before anything is touched.
pub(crate) struct Outlook {
    pub(crate) plan: Plan,
    /// What will be less than was asked for.
    pub(crate) caveats: Vec<String>,
    /// Why it is not carried out, where it is known that it cannot be.
    pub(crate) objection: Option<Failure>,
}

impl Outlook {
    /// Makes the plan for what was seen, and asks the hosts what they think of it.
    pub(crate) async fn of(
        scene: &Scene,
        reach: &Reach,
        observed: &Observed,
        goal: &Goal,
    ) -> Result<Self, Failure> {
        let plan = plan(&scene.fleet, observed, goal)?;
        if let Some(objection) = nobody_to_fetch_from(&plan) {
            return Ok(Self { plan, caveats: Vec::new(), objection: Some(objection) });
        }
        let preflight = reach.preflight(&plan).await;
        let obstacles = preflight.obstacles;
        let objection = (!obstacles.is_empty()).then_some(Failure::Obstacles(obstacles));
        Ok(Self { plan, caveats: preflight.caveats, objection })
    }
}

/// Nodes that fetch their configuration need a server to fetch it from.
fn nobody_to_fetch_from(plan: &Plan) -> Option<Failure> {
    let fetches = |action: &Action| matches!(action, Action::Configure { mode, .. } if *mode != Mode::Push);
    let nodes = plan.nodes.iter().filter(|node| node.up.iter().any(fetches));
    let nodes: Vec<_> = nodes.map(|node| node.name().clone()).collect();
    (!nodes.is_empty()).then_some(Failure::NoServer(nodes))
}
