//! What is, next to what is wanted: state, configuration, drift and health of every node. Changes nothing and takes no
//! lock.

mod inspect;
mod render;
mod standing;

use std::collections::BTreeMap;
use std::time::Duration;

use orch_model::{
    Fleet, HostName, Identity, Inspection, ManifestName, Node, NodeRecord, Problems, ResourceReport,
    SiteName, StorePath,
};
use orch_plan::{Applied, Goal, HostView, NodePlan, Observed, Plan, Selection, Verb, Verdict, plan};
use serde::Serialize;

use crate::doors::{Doors, Presence, picked};
use crate::report::ExitCode;
use inspect::{Inspected, inspect_all};
pub use standing::{ConfigState, LeftBehind, NodeCondition, NodeStanding, NodeState};

/// How a fleet fares.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    /// The site.
    pub site: SiteName,
    /// The manifest.
    pub manifest: ManifestName,
    /// The hosts.
    pub hosts: Vec<HostName>,
    /// The exit code that says it all.
    pub exit_code: ExitCode,
    /// Every node that was asked about, in the fleet's order.
    pub nodes: Vec<NodeStanding>,
    /// Machines of this manifest that it no longer describes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<LeftBehind>,
    /// What is less than was asked for on these hosts, though it works. Whoever knows the hosts adds it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
}

impl Standing {
    /// Asks every node that runs what it is, all at once and each for at most `deadline`, and puts that next to what is
    /// wanted. Fails only where the selection picks nodes that the fleet does not have.
    pub async fn of(
        fleet: &Fleet,
        only: &Selection,
        observed: &Observed,
        doors: &Doors,
        deadline: Duration,
    ) -> Result<Self, Problems> {
        let nodes = picked(fleet, only)?;
        let inspected = inspect_all(fleet, &nodes, observed, doors, deadline).await;
        let goal = Goal { only: only.clone(), ..Goal::of(Verb::Create) };
        let plan = plan(fleet, &better_known(fleet, observed, &nodes, &inspected), &goal)?;
        let standings = nodes.iter().zip(&plan.nodes).zip(inspected).map(|((node, planned), inspected)| {
            let presence = Presence::of(fleet, &node.identity, observed);
            standing(node, planned, presence, inspected)
        });
        Ok(Self::seal(fleet, &plan, standings.collect()))
    }

    fn seal(fleet: &Fleet, plan: &Plan, nodes: Vec<NodeStanding>) -> Self {
        let leftovers: Vec<LeftBehind> = plan.leftovers.iter().map(LeftBehind::of).collect();
        Self {
            site: fleet.site.clone(),
            manifest: fleet.manifest.clone(),
            hosts: plan.hosts.iter().cloned().collect(),
            exit_code: exit_code(nodes.iter().map(|node| node.condition), leftovers.len()),
            nodes,
            leftovers,
            caveats: Vec::new(),
        }
    }

    /// Adds what their server knows of nodes that fetch their configuration.
    pub fn with_records(mut self, mut records: BTreeMap<Identity, NodeRecord>) -> Self {
        for node in &mut self.nodes {
            node.pull = records.remove(&node.identity);
            node.condition = node.judged();
        }
        let conditions = self.nodes.iter().map(|node| node.condition);
        self.exit_code = exit_code(conditions, self.leftovers.len());
        self
    }

    /// How many nodes fare so.
    pub fn count(&self, condition: NodeCondition) -> usize {
        self.nodes.iter().filter(|node| node.condition == condition).count()
    }
}

/// What was observed, where a node that says it has drifted counts as one whose configuration is not known: a plan then
/// applies it anew. Asks every node that runs and that the goal is about, all at once and each for at most `deadline`.
///
/// `config` minds whatever has drifted, and a node that does not answer. `create` minds only NixOS systems, since a host cannot
/// tell which one a node runs: one that another moved is not as wanted, whatever was written down before.
pub async fn minding_drift(
    fleet: &Fleet,
    goal: &Goal,
    observed: &Observed,
    doors: &Doors,
    deadline: Duration,
) -> Result<Observed, Problems> {
    let mut nodes = picked(fleet, &goal.only)?;
    match goal.verb {
        Verb::Config => {}
        Verb::Create => nodes.retain(|node| wanted_system(node).is_some()),
        Verb::Destroy => nodes.clear(),
    }
    let inspected = inspect_all(fleet, &nodes, observed, doors, deadline).await;
    let mut minded = observed.clone();
    for (node, inspected) in nodes.iter().zip(&inspected) {
        let applied = match inspected {
            Some(Inspected::Seen(inspection)) if goal.verb == Verb::Create => {
                if !runs_another(node, inspection) {
                    continue;
                }
                Applied::Unknown
            }
            Some(Inspected::Unreached { .. }) if goal.verb == Verb::Create => continue,
            Some(Inspected::Seen(inspection)) if inspection.drift().next().is_some() => Applied::Unknown,
            Some(Inspected::Seen(inspection)) => inspection.applied.map_or(Applied::Never, Applied::Digest),
            Some(Inspected::Unreached { .. }) => Applied::Unknown,
            Some(Inspected::Reached) | None => continue,
        };
        set_applied(fleet, node, applied, &mut minded);
    }
    Ok(minded)
}

fn wanted_system(node: &Node) -> Option<&StorePath> {
    node.config.as_ref()?.system()
}

/// Whether a node says that it runs or boots another system than it should.
fn runs_another(node: &Node, inspection: &Inspection) -> bool {
    let wanted = wanted_system(node).map(StorePath::as_str);
    inspection.drift().any(|resource| resource.kind == "system" && Some(resource.name.as_str()) == wanted)
}

/// Everything as wanted is 0; nothing that works is 1; whatever is between them is 2, and so is something left over.
fn exit_code(conditions: impl IntoIterator<Item = NodeCondition>, leftovers: usize) -> ExitCode {
    let (mut total, mut wanted, mut broken) = (0, 0, 0);
    for condition in conditions {
        total += 1;
        wanted += usize::from(condition == NodeCondition::AsWanted);
        broken += usize::from(condition.is_broken());
    }
    match (wanted == total, broken == total) {
        (true, _) if leftovers == 0 => ExitCode::Done,
        (false, true) => ExitCode::Failed,
        _ => ExitCode::Partly,
    }
}

/// What was observed, with what the nodes themselves said of their configurations: they know better than their host.
fn better_known(
    fleet: &Fleet,
    observed: &Observed,
    nodes: &[&Node],
    inspected: &[Option<Inspected>],
) -> Observed {
    let mut better = observed.clone();
    for (node, inspected) in nodes.iter().zip(inspected) {
        if let Some(Inspected::Seen(Inspection { applied: Some(applied), .. })) = inspected {
            set_applied(fleet, node, Applied::Digest(*applied), &mut better);
        }
    }
    better
}

fn set_applied(fleet: &Fleet, node: &Node, applied: Applied, observed: &mut Observed) {
    let Some(HostView::Seen { machines, .. }) = observed.hosts.get_mut(&node.identity.host) else {
        return;
    };
    let is_it = |marks: &orch_plan::Marks| marks.is_of(&fleet.site, &node.identity);
    for machine in machines.iter_mut().filter(|machine| machine.marks.as_ref().is_some_and(is_it)) {
        machine.applied = applied;
    }
}

fn standing(
    node: &Node,
    planned: &NodePlan,
    presence: Presence<'_>,
    inspected: Option<Inspected>,
) -> NodeStanding {
    let mut standing = NodeStanding {
        identity: node.identity.clone(),
        condition: NodeCondition::AsWanted,
        state: NodeState::of(presence),
        config: ConfigState::of(node, presence, inspected.as_ref()),
        differs: Vec::new(),
        drift: Vec::new(),
        skipped: Vec::new(),
        health: Vec::new(),
        pull: None,
        why: None,
        evidence: Vec::new(),
        hint: None,
    };
    match inspected {
        Some(Inspected::Seen(inspection)) => {
            let (skipped, resources): (Vec<ResourceReport>, _) =
                inspection.resources.into_iter().partition(|resource| resource.skipped.is_some());
            standing.skipped = skipped;
            standing.drift = resources.into_iter().filter(|resource| resource.changed).collect();
            standing.health = inspection.health;
        }
        Some(Inspected::Unreached { why, evidence, hint }) => {
            (standing.why, standing.evidence, standing.hint) = (Some(why), evidence, Some(hint));
        }
        Some(Inspected::Reached) | None => {}
    }
    if planned.verdict != Verdict::Create && planned.verdict != Verdict::Unchanged {
        standing.differs.clone_from(&planned.why);
    }
    standing.condition = standing.judged();
    standing
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exit code of nodes that fare so.
    fn code(conditions: &[NodeCondition], leftovers: usize) -> u8 {
        exit_code(conditions.iter().copied(), leftovers).into()
    }

    #[test]
    fn the_exit_code_says_wanted_broken_or_between() {
        use NodeCondition::{AsWanted, Differs, Drifted, Missing, Stopped, Unhealthy, Unreachable};
        let cases: [(&[NodeCondition], usize, u8); 12] = [
            (&[], 0, 0),
            (&[AsWanted], 0, 0),
            (&[AsWanted, AsWanted], 1, 2),
            (&[Drifted], 0, 2),
            (&[Differs, AsWanted], 0, 2),
            (&[Unhealthy], 0, 1),
            (&[Unhealthy, AsWanted], 0, 2),
            (&[Missing, Missing], 0, 1),
            (&[Missing, AsWanted], 0, 2),
            (&[Missing, Drifted], 0, 2),
            (&[Missing, Unreachable, Stopped], 0, 1),
            (&[Missing], 1, 1),
        ];
        for (conditions, leftovers, expected) in cases {
            assert_eq!(code(conditions, leftovers), expected, "{conditions:?}, {leftovers} left over");
        }
    }
}
