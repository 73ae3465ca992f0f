//! Asks nodes what they are, all at once, each within its time.

use std::sync::Arc;
use std::time::Duration;

use orch_model::{Config, Fleet, Inspection, Node};
use orch_plan::Observed;

use crate::doors::{Doors, Presence, at_once};
use crate::transport::{Door, Target, TransportError};

/// What a node said when it was asked.
#[derive(Debug, Clone)]
pub(super) enum Inspected {
    /// What it is.
    Seen(Inspection),
    /// That it is there; it has no configuration that it could differ from.
    Reached,
    /// Nothing that can be used.
    Unreached {
        /// Why.
        why: String,
        /// The last lines of what tells more.
        evidence: Vec<String>,
        /// What to try.
        hint: String,
    },
}

impl From<TransportError> for Inspected {
    fn from(error: TransportError) -> Self {
        Self::Unreached { why: error.to_string(), evidence: error.evidence().to_vec(), hint: error.hint() }
    }
}

/// Asks every node that runs; nothing is said of the others.
pub(super) async fn inspect_all(
    fleet: &Fleet,
    nodes: &[&Node],
    observed: &Observed,
    doors: &Doors,
    deadline: Duration,
) -> Vec<Option<Inspected>> {
    let questions = nodes.iter().map(|node| {
        let target = Presence::of(fleet, &node.identity, observed).target(node);
        let door = doors.get(&node.identity.host).cloned();
        ask(target, door, node.config.clone(), deadline)
    });
    at_once(questions).await.into_iter().map(Option::flatten).collect()
}

async fn ask(
    target: Option<Target>,
    door: Option<Arc<dyn Door>>,
    config: Option<Config>,
    deadline: Duration,
) -> Option<Inspected> {
    let (target, door) = target.zip(door)?;
    let question = async {
        match &config {
            Some(config) => door.inspect(&target, config).await.map(Inspected::Seen),
            // Whatever runs there, and however it ends: that it could be asked is the answer.
            None => door.exec(&target, &["true".to_owned()], deadline).await.map(|_| Inspected::Reached),
        }
    };
    let unanswered = || TransportError::Unreachable {
        node: target.identity.clone(),
        why: format!("no answer within {}s", deadline.as_secs_f64()),
        evidence: Vec::new(),
    };
    let answer = tokio::time::timeout(deadline, question).await;
    Some(answer.unwrap_or_else(|_| Err(unanswered())).unwrap_or_else(Inspected::from))
}
