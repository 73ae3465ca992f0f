//! Takes nodes back to the system that they ran before this run moved them, and says so only after reading it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use orch_dag::{Control, Hooks, OnError, Outcome, Runner, Status, TaskError, TaskId, TaskReport};
use orch_model::Identity;
use orch_model::system::{RolloutPhase, SwitchAnswer};
use orch_plan::{Action, Plan};

use super::carry_out::Work;
use super::rollback::unless_cancelled;
use super::step_error::StepError;
use super::steps::Step;
use crate::journal::{Entry, StepValue};
use crate::transport::Target;

/// The nodes that this run moved to another system, as its steps ended.
pub(super) fn moved(
    plan: &Plan,
    steps: &[Step<'_>],
    tasks: &[Arc<TaskReport<StepValue>>],
    work: &Work,
) -> BTreeMap<Identity, Target> {
    let changed: BTreeMap<&str, bool> =
        tasks.iter().map(|task| (&*task.name, task.status == Status::Changed)).collect();
    let moved = steps.iter().filter(|step| changed.get(step.name.as_str()) == Some(&true));
    let moved = moved.filter_map(|step| {
        let Some(Action::Configure { machine: Some(machine), config, mode }) = step.action else {
            return None;
        };
        let identity = &plan.nodes[step.node()?].identity;
        config.system().map(|_| (identity.clone(), work.target(identity, machine.uuid, *mode)))
    });
    moved.collect()
}

/// Takes these nodes back, those that need others first. One that cannot be taken back does not keep the others.
///
/// A stop of the run is no reason to leave them where they are, so only a cancel is listened to.
pub(super) async fn take_back(
    plan: &Plan,
    work: &Arc<Work>,
    moved: &BTreeMap<Identity, Target>,
    control: &Control,
    hooks: Arc<dyn Hooks<StepValue>>,
) {
    let mut tasks = orch_dag::Plan::new("going back").on_error(OnError::Continue);
    let mut dependents: Vec<Vec<TaskId>> = vec![Vec::new(); plan.nodes.len()];
    for (place, node) in plan.nodes.iter().enumerate().rev() {
        let Some(target) = moved.get(&node.identity).cloned() else { continue };
        let work = Arc::clone(work);
        let task = tasks.task(format!("{}/back", node.identity), move |_| {
            let (work, target) = (Arc::clone(&work), target.clone());
            async move { one_back(&work, &target).await }
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
    let is_over = record.phase == RolloutPhase::RolledBack;
    (!is_over).then(|| format!("it says of itself that it is {:?}", record.phase).to_lowercase())
}

async fn say(work: &Work, node: Identity, running: Option<String>, error: Option<String>) {
    let entry = Entry::Returned { at: Timestamp::now(), node, running, error };
    // The report is made from memory, where this entry is even if the disk is full.
    let _ = work.journal().append(entry).await;
}
