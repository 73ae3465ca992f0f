//! The ways into the nodes of a fleet: which of them are there to be gone to, and many of them at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use orch_model::{Fleet, HostName, Identity, Node, Problems};
use orch_plan::{Goal, Machine, MachineState, Observed, Selection, Verb, plan};
use tokio::task::JoinSet;

use crate::progress::Progress;
use crate::transport::{Door, Target};

/// The way into the nodes of each host.
pub type Doors = BTreeMap<HostName, Arc<dyn Door>>;

/// What stands where a node should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Presence<'o> {
    /// Its machine.
    Machine(&'o Machine),
    /// Several machines bear its mark, so that none of them is it.
    Several,
    /// Nothing of ours; but another's machine has its name.
    Stranger(&'o Machine),
    /// Nothing.
    Nothing,
    /// Its host did not answer, or was not looked at.
    Unseen,
}

impl<'o> Presence<'o> {
    /// Finds a node in what is there.
    pub fn of(fleet: &Fleet, identity: &Identity, observed: &'o Observed) -> Self {
        let Some(orch_plan::HostView::Seen { machines, .. }) = observed.hosts.get(&identity.host) else {
            return Self::Unseen;
        };
        let is_it = |machine: &&Machine| {
            machine.marks.as_ref().is_some_and(|marks| marks.is_of(&fleet.site, identity))
        };
        let mut own = machines.iter().filter(is_it);
        match (own.next(), own.next()) {
            (Some(machine), None) => Self::Machine(machine),
            (Some(_), Some(_)) => Self::Several,
            (None, _) => {
                let name = identity.plain_name();
                let stranger = machines.iter().find(|machine| machine.name == name);
                stranger.map_or(Self::Nothing, Self::Stranger)
            }
        }
    }

    /// What a door needs to know of a node; nothing where it does not run.
    pub fn target(self, node: &Node) -> Option<Target> {
        let Self::Machine(machine) = self else {
            return None;
        };
        let uuid = machine.marks.as_ref()?.uuid;
        let target = Target {
            identity: node.identity.clone(),
            uuid,
            mode: node.mode,
            progress: Progress::to_nobody(),
        };
        (machine.state == MachineState::Running).then_some(target)
    }

    /// Why nobody can go there, in words after the node's name.
    pub fn why_not(self) -> &'static str {
        match self {
            Self::Machine(machine) => match machine.state {
                MachineState::Running => "runs",
                MachineState::Stopped => "is stopped",
                MachineState::Partial => "is half made",
            },
            Self::Several => "has several machines that bear its mark",
            Self::Stranger(_) => "does not exist, and another's machine has its name",
            Self::Nothing => "does not exist",
            Self::Unseen => "is on a host that cannot be looked at",
        }
    }
}

/// The nodes of a fleet that a selection picks, in the fleet's order.
pub fn picked<'f>(fleet: &'f Fleet, only: &Selection) -> Result<Vec<&'f Node>, Problems> {
    let goal = Goal { only: only.clone(), ..Goal::of(Verb::Create) };
    let plan = plan(fleet, &Observed::default(), &goal)?;
    let mut picked = plan.nodes.iter().map(|node| &node.identity).peekable();
    // A plan has the nodes in the fleet's order, so one walk finds them all.
    Ok(fleet.nodes.iter().filter(|node| picked.next_if_eq(&&node.identity).is_some()).collect())
}

/// Waits for all of them at once; the answers come in the order of the questions.
pub async fn at_once<T: Send + 'static>(
    questions: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<Option<T>> {
    let mut asked = JoinSet::new();
    let mut count = 0;
    for (place, question) in questions.into_iter().enumerate() {
        asked.spawn(async move { (place, question.await) });
        count += 1;
    }
    let mut answers: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
    while let Some(answer) = asked.join_next().await {
        // A question that panicked has no place to be answered at, and stays without an answer.
        if let Ok((place, answer)) = answer {
            answers[place] = Some(answer);
        }
    }
    answers
}
