//! What became of the gates between batches, and of nodes that they found ill or that were taken back afterwards.

use orch_dag::Status;
use orch_model::NodeName;
use orch_plan::Plan;
use serde::Serialize;

use super::tell::Told;
use super::{NodeReport, NodeStatus, StepReport};
use crate::runner::{Step, Subject};

/// What became of a gate.
#[derive(Debug, Clone, Serialize)]
pub struct GateReport {
    /// The batch before it, counted from 1.
    pub batch: usize,
    /// The nodes of that batch.
    pub nodes: Vec<NodeName>,
    /// Why it did not open, where it did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// When it was come to, and how that ended.
    pub step: StepReport,
}

impl GateReport {
    /// Whether it opened.
    pub fn is_open(&self) -> bool {
        matches!(self.step.status, NodeStatus::Changed | NodeStatus::Unchanged)
    }
}

/// The gates that were come to, in their order.
pub(super) fn gates(plan: &Plan, steps: &[Step<'_>], told: &Told<'_>) -> Vec<GateReport> {
    let Some(stages) = &plan.stages else { return Vec::new() };
    let gates = steps.iter().filter_map(|step| {
        let Subject::Gate(batch) = step.subject else { return None };
        // One that the run did not come to says nothing.
        let ended = told.step(&step.name).filter(|ended| !ended.status.is_skipped())?;
        let why = match &ended.status {
            Status::Failed(failure) => vec![failure.to_string()],
            Status::Changed | Status::Unchanged | Status::Skipped(_) => Vec::new(),
        };
        let nodes = stages.batches[batch].iter().map(|place| plan.nodes[*place].name().clone()).collect();
        Some(GateReport { batch: batch + 1, nodes, why, step: StepReport::of("gate", ended) })
    });
    gates.collect()
}

/// A node that was done and was found not to be well at a gate is not done.
pub(super) fn after_gate(report: &mut NodeReport, told: &Told<'_>) {
    if let Some(why) = told.ill.get(&report.identity) {
        report.status = NodeStatus::Failed;
        report.why =
            vec!["it was done, and was not well when it was looked at again".to_owned(), (*why).to_owned()];
        report.hint = Some("see what is wrong with it; `orch status` asks it again".to_owned());
    }
}

/// A node that was taken back to the system before, as it was read.
pub(super) fn after_return(report: &mut NodeReport, told: &Told<'_>) {
    match told.returned.get(&report.identity) {
        None => {}
        Some((_, Some(error))) => {
            report.status = NodeStatus::Failed;
            report.why.push(format!("it could not be taken back to the system before: {error}"));
            report.hint = Some("see how it stands; `orch status` asks it".to_owned());
        }
        Some((running, None)) => {
            let back = format!("taken back: it runs {} again", running.unwrap_or("the system before"));
            if report.status == NodeStatus::Failed {
                report.why.push(back);
            } else {
                report.status = NodeStatus::Skipped;
                report.why = vec![format!("{back}, because too many others failed")];
            }
        }
    }
}
