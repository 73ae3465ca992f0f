//! Takes nodes back to the system that they ran before this run moved them, and says so only after reading it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use orch_dag::{Control, Hooks, OnError, Outcome, Runner, Status, TaskError, TaskId, TaskReport};
use orch_model::Identity;
use orch_model::system::{RolloutPhase, SwitchAnswer};
use orch_plan::{Action, Plan};

use super::carry_out::Work;
use super::lease;
use super::rollback::unless_cancelled;
use super::step_error::StepError;
use super::steps::Step;
use crate::journal::{Entry, StepValue};
use crate::transport::Target;

/// A node that this run moved to another system, or began to.
pub(super) struct Moved {
    target: Target,
    /// Whether its step said so; one that failed may have moved it all the same.
    is_told: bool,
}

/// The nodes that this run began to move to another system, as its steps ended.
pub(super) fn moved(
    plan: &Plan,
    steps: &[Step<'_>],
    tasks: &[Arc<TaskReport<StepValue>>],
    work: &Work,
) -> BTreeMap<Identity, Moved> {
    let begun =
        |task: &&Arc<TaskReport<StepValue>>| task.status == Status::Changed || task.status.is_failed();
    let begun: BTreeMap<&str, bool> =
        tasks.iter().filter(begun).map(|task| (&*task.name, task.status == Status::Changed)).collect();
    let moved = steps.iter().filter_map(|step| {
        let is_told = *begun.get(step.name.as_str())?;
        let Some(Action::Configure { machine: Some(machine), config, mode }) = step.action else {
            return None;
        };
        config.system()?;
        let identity = &plan.nodes[step.node()?].identity;
        let target = work.target(identity, machine.uuid, *mode);
        Some((identity.clone(), Moved { target, is_told }))
    });
    moved.collect()
}

/// Takes these nodes back, those that need others first. One that cannot be taken back does not keep the others.
///
/// A stop of the run is no reason to leave them where they are, so only a cancel is listened to.
pub(super) async fn take_back(
    plan: &Plan,
    work: &Arc<Work>,
    moved: BTreeMap<Identity, Moved>,
    control: &Control,
    hooks: Arc<dyn Hooks<StepValue>>,
) {
    let mut tasks = orch_dag::Plan::new("going back").on_error(OnError::Continue);
    let mut dependents: Vec<Vec<TaskId>> = vec![Vec::new(); plan.nodes.len()];
    let mut moved: BTreeMap<_, _> = moved.into_iter().map(|(node, moved)| (node, Arc::new(moved))).collect();
    for (place, node) in plan.nodes.iter().enumerate().rev() {
        let Some(moved) = moved.remove(&node.identity) else { continue };
        let work = Arc::clone(work);
        let task = tasks.task(format!("{}/back", node.identity), move |_| {
            let (work, moved) = (Arc::clone(&work), Arc::clone(&moved));
            async move {
                if moved.is_told || may_have_moved(&work, &moved.target).await {
                    one_back(&work, &moved.target).await
                } else {
                    Ok(Outcome::unchanged().with(StepValue::default()))
                }
            }
        });
        task.after_all(std::mem::take(&mut dependents[place])).even_if_failed();
        let id = task.id();
        node.needs.iter().for_each(|need| dependents[*need].push(id));
    }
    let own = Control::new();
    let runner = Runner::new().limit(plan.parallelism).control(own.clone()).hooks(hooks);
    let (report, cancelled) = unless_cancelled(control, &own, runner.run(tasks)).await;
    let report = report.expect("the nodes of a plan have distinct names and no cycle");
    if cancelled && !report.is_success() {
        // The report is made from memory, where this entry is even if the disk is full.
        let _ = work.journal().append(Entry::Interrupted { at: Timestamp::now(), cancelled }).await;
    }
    for task in report.tasks.iter().filter(|task| task.status.is_skipped()) {
        let identity = task.name.strip_suffix("/back").and_then(|identity| identity.parse().ok());
        if let Some(node) = identity {
            say(work, node, None, Some("the run was cut off before that".to_owned())).await;
        }
    }
}

/// Whether a node was moved by this run, by its own word. One that cannot be asked may have been.
async fn may_have_moved(work: &Work, target: &Target) -> bool {
    let Ok(Some(leaser)) = work.place(&target.identity).map(|place| place.leaser.clone()) else {
        return true;
    };
    let claim = lease::claim(work);
    let asked = leaser.lease(target, &claim, &work.permit);
    match tokio::time::timeout(work.patience().look, asked).await {
        Ok(Ok(answer)) => answer.view.rollout.is_some_and(|rollout| rollout.run == claim.run),
        Ok(Err(_)) | Err(_) => true,
    }
}

async fn one_back(work: &Work, target: &Target) -> Result<Outcome<StepValue>, TaskError> {
    let intent = Entry::Returning { at: Timestamp::now(), node: target.identity.clone() };
    let begun = work.journal().append(intent).await.map_err(StepError::from);
    let (running, error) = match begun {
        Err(error) => (None, Some(error)),
        Ok(()) => match work.go_back(target).await {
            Err(error) => (None, Some(error)),
            Ok(answer) => (answer.view.running.clone(), not_back(&answer).map(StepError::NotBack)),
        },
    };
    let why = error.as_ref().map(|error| super::with_causes(error));
    say(work, target.identity.clone(), running, why).await;
    match error {
        None => Ok(Outcome::changed().with(StepValue::default())),
        Some(error) => Err(error.into_task_error().no_retry()),
    }
}

/// Why what was read of a node does not say that it is back, if it does not.
fn not_back(answer: &SwitchAnswer) -> Option<String> {
    let (record, view) = (&answer.record, &answer.view);
    let named =
        |system: &Option<String>| system.clone().unwrap_or_else(|| "nothing that could be read".into());
    if view.running.is_none() || view.running != record.previous {
        return Some(format!("it runs {} and not {}", named(&view.running), named(&record.previous)));
    }
    if record.previous_default.is_some() && view.boot_default != record.previous_default {
        let (boots, before) = (named(&view.boot_default), named(&record.previous_default));
        return Some(format!("it runs {}, and boots {boots} and not {before}", named(&view.running)));
    }
    // One that can only be booted into was never gone over to.
    let is_over = matches!(record.phase, RolloutPhase::RolledBack | RolloutPhase::NeedsReboot);
    (!is_over).then(|| format!("it says of itself that it is {:?}", record.phase).to_lowercase())
}

async fn say(work: &Work, node: Identity, running: Option<String>, error: Option<String>) {
    let entry = Entry::Returned { at: Timestamp::now(), node, running, error };
    // The report is made from memory, where this entry is even if the disk is full.
    let _ = work.journal().append(entry).await;
}
