//! Takes down what this run made, children first, and says so only after reading back that it is gone.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use jiff::Timestamp;
use orch_dag::{
    Control, Failure, Hooks, OnError, Outcome, Report, Runner, SkipReason, Status, TaskError, TaskId,
};
use orch_model::Identity;
use orch_plan::Plan;
use uuid::Uuid;

use super::carry_out::Work;
use super::step_error::StepError;
use super::{retry, with_causes};
use crate::journal::{Entry, StepValue};
use crate::report::CUT_WHILE_TAKEN_DOWN;

/// Takes down every machine that this run began to make. One that cannot be taken down does not keep the others, but
/// keeps what it lives on.
///
/// A stop of the run is no reason to leave what it made, so only a cancel is listened to. Whatever it cuts off, or keeps
/// from being begun, is told as still there.
pub(super) async fn roll_back(
    plan: &Plan,
    work: &Arc<Work>,
    control: &Control,
    hooks: Arc<dyn Hooks<StepValue>>,
) {
    let (tasks, nodes) = tasks(plan, work);
    let own = Control::new();
    let runner = Runner::new().limit(plan.parallelism).control(own.clone()).hooks(hooks);
    let (report, cancelled) = unless_cancelled(control, &own, runner.run(tasks)).await;
    let report = report.expect("the nodes of a plan have distinct names and no cycle");
    if cancelled && !report.is_success() {
        // The report is made from memory, where this entry is even if the disk is full.
        let _ = work.journal().append(Entry::Interrupted { at: Timestamp::now(), cancelled }).await;
    }
    tell_what_is_left(work, &report, &nodes).await;
}

/// Waits for a run under a control of its own, that only a cancel of the outer one reaches; also says whether it did.
pub(super) async fn unless_cancelled<T>(
    outer: &Control,
    own: &Control,
    run: impl Future<Output = T>,
) -> (T, bool) {
    let mut run = pin!(run);
    tokio::select! {
        biased;
        () = outer.cancelled() => {
            own.cancel();
            (run.await, true)
        }
        done = &mut run => (done, false),
    }
}

/// A task for each machine, children first, and the node of each by the task's name.
fn tasks<'p>(
    plan: &'p Plan,
    work: &Arc<Work>,
) -> (orch_dag::Plan<StepValue>, BTreeMap<String, &'p Identity>) {
    let mut nodes = BTreeMap::new();
    let made = work.made();
    let retry = retry(work.patience());
    let mut tasks = orch_dag::Plan::new("rollback").on_error(OnError::Continue);
    let mut dependents: Vec<Vec<TaskId>> = vec![Vec::new(); plan.nodes.len()];
    for (place, node) in plan.nodes.iter().enumerate().rev() {
        let Some(uuid) = made.get(&node.identity).copied() else {
            continue;
        };
        let (work, identity) = (Arc::clone(work), node.identity.clone());
        let name = format!("{}/rollback", node.identity);
        nodes.insert(name.clone(), &node.identity);
        let task = tasks.task(name, move |_| {
            let (work, identity) = (Arc::clone(&work), identity.clone());
            async move { unmake(&work, identity, uuid).await }
        });
        task.after_all(std::mem::take(&mut dependents[place])).retry(retry);
        let id = task.id();
        node.needs.iter().for_each(|need| dependents[*need].push(id));
    }
    (tasks, nodes)
}

/// Tells of the machines whose own tasks could not: those that were not tried, and those that were cut off.
async fn tell_what_is_left(work: &Work, report: &Report<StepValue>, nodes: &BTreeMap<String, &Identity>) {
    for task in &report.tasks {
        let why = match &task.status {
            Status::Failed(Failure::Cancelled) => CUT_WHILE_TAKEN_DOWN,
            Status::Skipped(SkipReason::Cancelled) => "the run was cut off before that",
            Status::Skipped(_) => "what needs it could not be taken down",
            Status::Changed | Status::Unchanged | Status::Failed(_) => continue,
        };
        if let Some(identity) = nodes.get(&*task.name) {
            say(work, identity, Some(why.to_owned())).await;
        }
    }
}

/// One try to take a machine down, told however it ends. What the last try said stands.
async fn unmake(work: &Work, identity: Identity, uuid: Uuid) -> Result<Outcome<StepValue>, TaskError> {
    let done = take_down(work, &identity, uuid).await;
    say(work, &identity, done.as_ref().err().map(|error| with_causes(error))).await;
    done.map(|()| Outcome::changed().with(StepValue::default())).map_err(StepError::into_task_error)
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
