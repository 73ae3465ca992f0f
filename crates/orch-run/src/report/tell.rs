//! What a journal says of each node of its plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use orch_dag::{Failure, SkipReason, Status, TaskReport};
use orch_model::Identity;
use orch_plan::{Action, NodePlan, Plan, Verdict};

use super::gate::{after_gate, after_return};
use super::{CUT_WHILE_TAKEN_BACK, CUT_WHILE_TAKEN_DOWN, NodeReport, NodeStatus, Paused, StepReport};
use crate::journal::{Entry, StepValue};
use crate::leaks::Left;
use crate::runner::{FEW_FAILED, REFUSED_HINT, Step, Subject};

/// What a journal says beside its plan.
#[derive(Default)]
pub(super) struct Told<'e> {
    steps: BTreeMap<&'e str, &'e Arc<TaskReport<StepValue>>>,
    advice: BTreeMap<&'e Identity, (&'e str, &'e [String])>,
    rolled_back: BTreeMap<&'e Identity, Option<&'e str>>,
    /// Nodes that a gate found not to be well, and why.
    pub(super) ill: BTreeMap<&'e Identity, &'e str>,
    /// Nodes that were to be taken back: what they run, and why they are not back.
    pub(super) returned: BTreeMap<&'e Identity, (Option<&'e str>, Option<&'e str>)>,
    pub(super) paused: Option<Paused>,
    pub(super) aborted: Option<&'e str>,
    pub(super) left: Option<&'e Left>,
    pub(super) interrupted: bool,
    pub(super) finished_at: Option<Timestamp>,
}

impl<'e> Told<'e> {
    /// Whether a rollback was begun, and left nothing.
    pub(super) fn is_rolled_back(&self) -> bool {
        !self.rolled_back.is_empty() && self.rolled_back.values().all(Option::is_none)
    }

    /// Whether nodes were to be taken back.
    pub(super) fn is_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// How a step ended, where it did.
    pub(super) fn step(&self, name: &str) -> Option<&'e Arc<TaskReport<StepValue>>> {
        self.steps.get(name).copied()
    }

    pub(super) fn of(entries: &'e [Entry]) -> Self {
        let mut told = Self::default();
        for entry in entries {
            match entry {
                Entry::Step { entry: orch_dag::Entry::Ended(report), .. } => {
                    told.steps.insert(&report.name, report);
                }
                Entry::Advice { node, hint, evidence, .. } => {
                    told.advice.insert(node, (hint, evidence));
                }
                Entry::Interrupted { .. } => told.interrupted = true,
                Entry::RollingBack { node, .. } => {
                    told.rolled_back.insert(node, Some(CUT_WHILE_TAKEN_DOWN));
                }
                Entry::RolledBack { node, error, .. } => {
                    told.rolled_back.insert(node, error.as_deref());
                }
                Entry::Gate { ill, .. } => {
                    told.ill.extend(ill.iter().map(|ill| (&ill.node, ill.why.as_str())));
                }
                Entry::Returning { node, .. } => {
                    told.returned.insert(node, (None, Some(CUT_WHILE_TAKEN_BACK)));
                }
                Entry::Returned { node, running, error, .. } => {
                    told.returned.insert(node, (running.as_deref(), error.as_deref()));
                }
                Entry::Paused { at, by } => told.paused = Some(Paused { by: by.clone(), since: *at }),
                Entry::Resumed { .. } => told.paused = None,
                Entry::Aborted { why, .. } => told.aborted = Some(why),
                Entry::LookedOver { left, .. } => told.left = Some(left),
                Entry::Finished { at } => told.finished_at = Some(*at),
                Entry::Begun { .. }
                | Entry::Marked { .. }
                | Entry::Step { .. }
                | Entry::Leased { .. }
                | Entry::Released { .. } => {}
            }
        }
        told
    }
}

/// Of a failed node whose machine was taken down again.
const ROLLED_BACK: &str = "rolled back";

pub(super) fn node_reports(plan: &Plan, steps: &[Step<'_>], told: &Told<'_>) -> Vec<NodeReport> {
    let subjects: BTreeMap<&str, Subject> =
        steps.iter().map(|step| (step.name.as_str(), step.subject)).collect();
    let culprit = |task: &str| match subjects.get(task) {
        Some(Subject::Node(place)) => format!("`{}` failed", plan.nodes[*place].name()),
        Some(Subject::Gate(batch)) => format!("the gate after batch {} did not open", batch + 1),
        None => format!("`{task}` failed"),
    };
    let mut reports: Vec<NodeReport> = plan.nodes.iter().map(|node| unfinished(&node.identity)).collect();
    let mut of_node: Vec<Vec<&Step<'_>>> = vec![Vec::new(); plan.nodes.len()];
    for (place, step) in steps.iter().filter_map(|step| Some((step.node()?, step))) {
        take_in(&mut reports[place], step, told, &culprit);
        of_node[place].push(step);
    }
    for ((report, node), steps) in reports.iter_mut().zip(&plan.nodes).zip(of_node) {
        explain(report, node, told);
        after_gate(report, told);
        after_return(report, told);
        after_rollback(report, told);
        if let Some(loss) = loss(&steps, told, node) {
            lose(report, loss, told);
        }
    }
    reports
}

/// Adds what the plan knew, and what to try.
fn explain(report: &mut NodeReport, node: &NodePlan, told: &Told<'_>) {
    if report.why.is_empty() && report.status == NodeStatus::Unchanged {
        report.why.clone_from(&node.why);
    }
    if report.status == NodeStatus::Failed {
        let known = node.is_refused().then_some(REFUSED_HINT);
        let advice = told.advice.get(&node.identity);
        report.hint = advice.map(|(hint, _)| *hint).or(known).map(str::to_owned);
        report.evidence = advice.map(|(_, evidence)| evidence.to_vec()).unwrap_or_default();
    }
    let is_up = matches!(report.status, NodeStatus::Changed | NodeStatus::Unchanged);
    if is_up && node.verdict == Verdict::NeedsReplace {
        report.hint = Some(format!("{}: this needs --replace", node.why.join("; ")));
    }
}

/// What a rollback made of a node: nothing where it was not part of one.
fn after_rollback(report: &mut NodeReport, told: &Told<'_>) {
    match told.rolled_back.get(&report.identity) {
        Some(Some(error)) => {
            report.status = NodeStatus::Failed;
            report.why.push(format!("could not be taken down again: {error}"));
            report.hint = Some("`destroy` takes it down, `create` goes on from it".to_owned());
        }
        Some(None) if report.status == NodeStatus::Failed => report.why.push(ROLLED_BACK.to_owned()),
        Some(None) => {
            report.status = NodeStatus::Skipped;
            report.why = vec!["rolled back, because another node failed".to_owned()];
        }
        None => {}
    }
}

/// Why a node that was to be made anew has no machine any more, if so. What has not ended yet is no loss, and what could
/// not be taken down may be there, and is told as such.
fn loss(steps: &[&Step<'_>], told: &Told<'_>, node: &NodePlan) -> Option<&'static str> {
    let rolled_back = told.rolled_back.get(&node.identity);
    if node.verdict != Verdict::Replace || rolled_back.is_some_and(Option::is_some) {
        return None;
    }
    let ended = |is_meant: fn(&Action) -> bool| -> Option<Vec<NodeStatus>> {
        let meant = steps.iter().filter(|step| step.action.is_some_and(is_meant));
        meant.map(|step| told.steps.get(step.name.as_str()).map(|report| status_of(&report.status))).collect()
    };
    let succeeded = |status: &NodeStatus| matches!(status, NodeStatus::Changed | NodeStatus::Unchanged);
    let destroys = ended(|action| matches!(action, Action::Destroy { .. }))?;
    let creates = ended(|action| matches!(action, Action::Create { .. }))?;
    let is_destroyed = destroys.iter().all(succeeded) && destroys.contains(&NodeStatus::Changed);
    match (is_destroyed, creates.iter().all(succeeded), rolled_back) {
        (true, false, _) => Some("its old machine was destroyed, and the new one was not made"),
        (true, true, Some(_)) => Some("its old machine was destroyed, and the new one was taken down again"),
        (false, _, _) | (true, true, None) => None,
    }
}

/// Turns a node that lost its machine into a failed one. One that failed by itself keeps its reason and its hint.
fn lose(report: &mut NodeReport, loss: &str, told: &Told<'_>) {
    let anew = "`create` makes it anew";
    if report.status == NodeStatus::Failed {
        report.why.retain(|why| why != ROLLED_BACK);
    } else {
        report.why.clear();
    }
    report.status = NodeStatus::Failed;
    report.why.push(loss.to_owned());
    let advice = told.advice.get(&report.identity).map(|(hint, _)| hint);
    report.hint = Some(advice.map_or_else(|| anew.to_owned(), |advice| format!("{advice}; {anew}")));
}

fn unfinished(identity: &Identity) -> NodeReport {
    NodeReport {
        identity: identity.clone(),
        status: NodeStatus::Unchanged,
        why: Vec::new(),
        evidence: Vec::new(),
        hint: None,
        timed_out: false,
        steps: Vec::new(),
    }
}

/// Adds what is known of a step to its node: the worst of its steps is the node's status.
fn take_in(node: &mut NodeReport, step: &Step<'_>, told: &Told<'_>, culprit: &dyn Fn(&str) -> String) {
    let ended = told.steps.get(step.name.as_str());
    let status = ended.map_or(NodeStatus::Unfinished, |report| status_of(&report.status));
    if severity(status) > severity(node.status) {
        node.status = status;
        node.why = ended.map(|report| reasons(&report.status, culprit)).unwrap_or_default();
    }
    node.timed_out |=
        ended.is_some_and(|report| matches!(report.status, Status::Failed(Failure::TimedOut { .. })));
    if let (Some(action), Some(report)) = (step.action, ended) {
        node.steps.push(StepReport::of(action.verb(), report));
    }
}

impl StepReport {
    /// A step of this verb, as it ended.
    pub(super) fn of(action: &'static str, report: &TaskReport<StepValue>) -> Self {
        Self {
            action,
            status: status_of(&report.status),
            attempts: report.attempts,
            started: report.started.map(|started| started.as_secs_f64()),
            seconds: report.duration.as_secs_f64(),
            note: report.value.as_ref().and_then(|value| value.note.clone()),
        }
    }
}

const fn severity(status: NodeStatus) -> u8 {
    match status {
        NodeStatus::Unchanged => 0,
        NodeStatus::Changed => 1,
        NodeStatus::Skipped => 2,
        NodeStatus::Unfinished => 3,
        NodeStatus::Failed => 4,
    }
}

const fn status_of(status: &Status) -> NodeStatus {
    match status {
        Status::Changed => NodeStatus::Changed,
        Status::Unchanged => NodeStatus::Unchanged,
        Status::Skipped(_) => NodeStatus::Skipped,
        Status::Failed(_) => NodeStatus::Failed,
    }
}

/// Why a step ended as it did, in words about nodes rather than about tasks.
fn reasons(status: &Status, culprit: &dyn Fn(&str) -> String) -> Vec<String> {
    match status {
        Status::Changed | Status::Unchanged => Vec::new(),
        Status::Skipped(SkipReason::DependencyFailed { task }) => vec![culprit(task)],
        Status::Skipped(SkipReason::StoppedBy { task }) => {
            vec![format!("the run stopped when {}", culprit(task))]
        }
        Status::Skipped(SkipReason::Guard { label }) if label == FEW_FAILED => {
            vec!["more nodes had failed by then than may".to_owned()]
        }
        Status::Skipped(reason) => vec![reason.to_string()],
        Status::Failed(Failure::Error { chain } | Failure::TimedOut { chain, .. }) if !chain.is_empty() => {
            chain.clone()
        }
        Status::Failed(Failure::Cancelled) => vec!["cut off; run again to heal what it left".to_owned()],
        Status::Failed(failure) => vec![failure.to_string()],
    }
}
