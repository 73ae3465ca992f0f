//! Takes down what this run made, children first, and says so only after reading back that it is gone.

use std::sync::Arc;

use jiff::Timestamp;
use orch_dag::{OnError, Outcome, Runner, TaskError, TaskId};
use orch_model::Identity;
use orch_plan::Plan;
use uuid::Uuid;

use super::carry_out::{StepError, Work};
use super::{retry, with_causes};
use crate::journal::Entry;

/// Takes down every machine that this run began to make. One that cannot be taken down does not keep the others, but
/// keeps what it lives on.
pub(super) async fn roll_back(plan: &Plan, work: &Arc<Work>) {
    let made = work.made();
    let retry = retry(work.patience());
    let mut tasks = orch_dag::Plan::new("rollback").on_error(OnError::Continue);
    let mut dependents: Vec<Vec<TaskId>> = vec![Vec::new(); plan.nodes.len()];
    for (place, node) in plan.nodes.iter().enumerate().rev() {
        let Some(uuid) = made.get(&node.identity).copied() else {
            continue;
        };
        let (work, identity) = (Arc::clone(work), node.identity.clone());
        let task = tasks.task(node.identity.to_string(), move |_| {
            let (work, identity) = (Arc::clone(&work), identity.clone());
            async move { unmake(&work, identity, uuid).await }
        });
        task.after_all(std::mem::take(&mut dependents[place])).retry(retry);
        let id = task.id();
        node.needs.iter().for_each(|need| dependents[*need].push(id));
    }
    let report = Runner::new().limit(plan.parallelism).run(tasks).await;
    let report = report.expect("the nodes of a plan have distinct names and no cycle");
    for task in report.tasks.iter().filter(|task| task.status.is_skipped()) {
        let identity = plan.nodes.iter().map(|node| &node.identity).find(|id| id.to_string() == *task.name);
        if let Some(identity) = identity {
            say(work, identity, Some("what needs it could not be taken down".to_owned())).await;
        }
    }
}

/// One try to take a machine down, told however it ends. What the last try said stands.
async fn unmake(work: &Work, identity: Identity, uuid: Uuid) -> Result<Outcome, TaskError> {
    let done = take_down(work, &identity, uuid).await;
    say(work, &identity, done.as_ref().err().map(|error| with_causes(error))).await;
    done.map(|()| Outcome::changed()).map_err(StepError::into_task_error)
}

async fn take_down(work: &Work, identity: &Identity, uuid: Uuid) -> Result<(), StepError> {
    let intent = Entry::RollingBack { at: Timestamp::now(), node: identity.clone(), uuid };
    work.journal().append(intent).await?;
    work.unmake(identity, uuid).await
}

async fn say(work: &Work, node: &Identity, error: Option<String>) {
    let entry = Entry::RolledBack { at: Timestamp::now(), node: node.clone(), error };
    // The report is made from memory, where this entry is even if the disk is full.
    let _ = work.journal().append(entry).await;
}
