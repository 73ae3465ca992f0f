//! A plan with what is known of it before anything is touched: a run and its rehearsal see the same.

use orch_model::{Fleet, Mode};
use orch_plan::{Action, Goal, NodePlan, Observed, Plan, plan};

use orch_providers::{Cost, Obstacle};
use orch_run::TreasuryError;

use crate::failure::Failure;
use crate::scene::{Reach, Scene};

/// A plan with what is known of it before anything is touched.
pub(crate) struct Outlook {
    pub(crate) plan: Plan,
    /// What will be less than was asked for.
    pub(crate) caveats: Vec<String>,
    /// What it will cost.
    pub(crate) costs: Vec<Cost>,
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
        let unserved = nobody_to_fetch_from(&plan, &scene.fleet, reach);
        let unserved = unserved
            .map(|failure| Obstacle { what: failure.to_string(), hint: failure.hint().unwrap_or_default() });
        let preflight = reach.preflight(&plan).await;
        let sealed = scene.sealed.iter().cloned().map(|TreasuryError { what, hint }| Obstacle { what, hint });
        let obstacles: Vec<Obstacle> = sealed.chain(unserved).chain(preflight.obstacles).collect();
        let objection = (!obstacles.is_empty()).then_some(Failure::Obstacles(obstacles));
        Ok(Self { plan, caveats: preflight.caveats, costs: preflight.costs, objection })
    }
}

/// Nodes that fetch their configuration need a server that they can reach. Those of this computer find one in their own
/// network.
fn nobody_to_fetch_from(plan: &Plan, fleet: &Fleet, reach: &Reach) -> Option<Failure> {
    let has_server = |node: &NodePlan| {
        let host = &node.identity.host;
        let has_address = fleet.hosts.get(host).is_some_and(|host| host.server_url.is_some());
        has_address || reach.ground.ears.contains_key(host)
    };
    let nodes = plan.nodes.iter().filter(|node| fetches(node) && !has_server(node));
    let nodes: Vec<_> = nodes.map(|node| node.name().clone()).collect();
    (!nodes.is_empty()).then_some(Failure::NoServer(nodes))
}

/// Whether a node is to fetch its configuration.
pub(crate) fn fetches(node: &NodePlan) -> bool {
    node.up.iter().any(|action| matches!(action, Action::Configure { mode, .. } if *mode != Mode::Push))
}
