//! What became of a run, from its journal: every node of the plan with exactly one status.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use orch_dag::{Failure, SkipReason, Status, TaskReport};
use orch_model::{Digest, HostName, Identity, ManifestName, SiteName};
use orch_plan::{Action, NodePlan, Plan, Verb, Verdict};
use serde::Serialize;

use crate::journal::{Entry, RunId, StepValue};
use crate::lock::is_alive;
use crate::log::one_line;
use crate::runner::{REFUSED_HINT, Step, steps};

/// Of a machine whose taking down began and did not end.
pub(crate) const CUT_WHILE_TAKEN_DOWN: &str = "the run ended while it was being taken down";

/// What a command's exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "u8")]
pub enum ExitCode {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// Some nodes failed and others did not.
    Partly = 2,
    /// Wrong arguments or configuration; nothing was touched.
    Invalid = 3,
    /// A time limit was reached.
    TimedOut = 4,
}

impl From<ExitCode> for u8 {
    fn from(code: ExitCode) -> Self {
        code as Self
    }
}

/// Whether a run is still going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It came to its end.
    Finished,
    /// Its process is alive.
    Running,
    /// Its process is gone and it did not come to its end. Running again heals what it left.
    Killed,
}

/// How a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeStatus {
    /// It is as wanted, and was changed for it.
    Changed,
    /// It was as wanted.
    Unchanged,
    /// It is not as wanted.
    Failed,
    /// Nothing, or not everything, was tried.
    Skipped,
    /// The run has not said yet, or was killed before it could.
    Unfinished,
}

/// What became of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The run.
    pub run: RunId,
    /// Whether it is still going.
    pub state: RunState,
    /// What it was for.
    pub verb: Verb,
    /// The site.
    pub site: SiteName,
    /// The manifest.
    pub manifest: ManifestName,
    /// The hosts.
    pub hosts: Vec<HostName>,
    /// The digest of its plan.
    pub plan: Digest,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended, if it did.
    pub finished_at: Option<Timestamp>,
    /// The exit code that says it all; none while the run is still going.
    pub exit_code: Option<ExitCode>,
    /// Whether somebody stopped it.
    pub interrupted: bool,
    /// Whether what it made was taken down again, all of it.
    pub rolled_back: bool,
    /// Why the journal could not be written, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_error: Option<String>,
    /// Every node of the plan, in its order.
    pub nodes: Vec<NodeReport>,
}

/// What became of a node.
#[derive(Debug, Clone, Serialize)]
pub struct NodeReport {
    /// The node.
    pub identity: Identity,
    /// How it ended.
    pub status: NodeStatus,
    /// Why, where there is something to say: a reason, or an error with its causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// What to try next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether a time limit was the cause.
    pub timed_out: bool,
    /// Its steps.
    pub steps: Vec<StepReport>,
}

/// What became of a step.
#[derive(Debug, Clone, Serialize)]
pub struct StepReport {
    /// The verb.
    pub action: &'static str,
    /// How it ended.
    pub status: NodeStatus,
    /// How often it was tried.
    pub attempts: u32,
    /// When it began, in seconds from the beginning of the run.
    pub started: Option<f64>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Something worth telling though it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Report {
    /// Tells a run from its journal; nothing where the journal does not begin with its plan.
    pub fn of(entries: &[Entry]) -> Option<Self> {
        let Entry::Begun { at, run, pid, started, plan } = entries.first()? else {
            return None;
        };
        let told = Told::of(entries);
        let nodes = node_reports(plan, &told);
        let state = match told.finished_at {
            Some(_) => RunState::Finished,
            None if is_alive(*pid, *started) => RunState::Running,
            None => RunState::Killed,
        };
        let rolled_back = told.is_rolled_back();
        let exit_code = match state {
            RunState::Running => None,
            RunState::Finished | RunState::Killed if rolled_back => Some(ExitCode::Failed),
            RunState::Finished => Some(exit_code(&nodes, told.interrupted)),
            RunState::Killed => Some(exit_code(&nodes, true)),
        };
        Some(Self {
            run: run.clone(),
            state,
            verb: plan.verb,
            site: plan.site.clone(),
            manifest: plan.manifest.clone(),
            hosts: plan.hosts.iter().cloned().collect(),
            plan: plan.digest,
            started_at: *at,
            finished_at: told.finished_at,
            exit_code,
            interrupted: told.interrupted,
            rolled_back,
            journal_error: None,
            nodes,
        })
    }

    /// The same run, whose journal could not be written to its end. It was cut short, so it is not done.
    pub(crate) fn unwritten(self, error: String) -> Self {
        let exit_code = match self.exit_code {
            Some(ExitCode::Done) => Some(exit_code(&self.nodes, true)),
            code => code,
        };
        Self { exit_code, journal_error: Some(error), ..self }
    }

    /// How long it took, as far as it got.
    pub fn duration(&self) -> Duration {
        let end = self.finished_at.unwrap_or_else(Timestamp::now);
        Duration::try_from(end.duration_since(self.started_at)).unwrap_or_default()
    }

    /// How many nodes ended so.
    pub fn count(&self, status: NodeStatus) -> usize {
        self.nodes.iter().filter(|node| node.status == status).count()
    }
}

/// What a journal says beside its plan.
#[derive(Default)]
struct Told<'e> {
    steps: BTreeMap<&'e str, &'e Arc<TaskReport<StepValue>>>,
    hints: BTreeMap<&'e Identity, &'e str>,
    rolled_back: BTreeMap<&'e Identity, Option<&'e str>>,
    interrupted: bool,
    finished_at: Option<Timestamp>,
}

impl<'e> Told<'e> {
    /// Whether a rollback was begun, and left nothing.
    fn is_rolled_back(&self) -> bool {
        !self.rolled_back.is_empty() && self.rolled_back.values().all(Option::is_none)
    }

    fn of(entries: &'e [Entry]) -> Self {
        let mut told = Self::default();
        for entry in entries {
            match entry {
                Entry::Step { entry: orch_dag::Entry::Ended(report), .. } => {
                    told.steps.insert(&report.name, report);
                }
                Entry::Advice { node, hint, .. } => {
                    told.hints.insert(node, hint);
                }
                Entry::Interrupted { .. } => told.interrupted = true,
                Entry::RollingBack { node, .. } => {
                    told.rolled_back.insert(node, Some(CUT_WHILE_TAKEN_DOWN));
                }
                Entry::RolledBack { node, error, .. } => {
                    told.rolled_back.insert(node, error.as_deref());
                }
                Entry::Finished { at } => told.finished_at = Some(*at),
                Entry::Begun { .. } | Entry::Marked { .. } | Entry::Step { .. } => {}
            }
        }
        told
    }
}

/// Of a failed node whose machine was taken down again.
const ROLLED_BACK: &str = "rolled back";

fn node_reports(plan: &Plan, told: &Told<'_>) -> Vec<NodeReport> {
    let steps = steps(plan);
    let nodes: BTreeMap<&str, usize> = steps.iter().map(|step| (step.name.as_str(), step.node)).collect();
    let culprit =
        |task: &str| nodes.get(task).map_or(task.to_owned(), |place| plan.nodes[*place].name().to_string());
    let mut reports: Vec<NodeReport> = plan.nodes.iter().map(|node| unfinished(&node.identity)).collect();
    for step in &steps {
        take_in(&mut reports[step.node], step, told, &culprit);
    }
    for (place, (report, node)) in reports.iter_mut().zip(&plan.nodes).enumerate() {
        if report.why.is_empty() && report.status == NodeStatus::Unchanged {
            report.why.clone_from(&node.why);
        }
        if report.status == NodeStatus::Failed {
            let known = node.is_refused().then_some(REFUSED_HINT);
            report.hint = told.hints.get(&node.identity).copied().or(known).map(str::to_owned);
        }
        let is_up = matches!(report.status, NodeStatus::Changed | NodeStatus::Unchanged);
        if is_up && node.verdict == Verdict::NeedsReplace {
            report.hint = Some(format!("{}: only --replace mends that", node.why.join("; ")));
        }
        match told.rolled_back.get(&node.identity) {
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
        if let Some(loss) = loss(&steps, place, told, node) {
            lose(report, loss, told);
        }
    }
    reports
}

/// Why a node that was to be made anew has no machine any more, if so. What has not ended yet is no loss, and what could
/// not be taken down may be there, and is told as such.
fn loss(steps: &[Step<'_>], place: usize, told: &Told<'_>, node: &NodePlan) -> Option<&'static str> {
    let rolled_back = told.rolled_back.get(&node.identity);
    if node.verdict != Verdict::Replace || rolled_back.is_some_and(Option::is_some) {
        return None;
    }
    let ended = |is_meant: fn(&Action) -> bool| -> Option<Vec<NodeStatus>> {
        let meant = steps.iter().filter(|step| step.node == place && step.action.is_some_and(is_meant));
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
    let advice = told.hints.get(&report.identity);
    report.hint = Some(advice.map_or_else(|| anew.to_owned(), |advice| format!("{advice}; {anew}")));
}

fn unfinished(identity: &Identity) -> NodeReport {
    NodeReport {
        identity: identity.clone(),
        status: NodeStatus::Unchanged,
        why: Vec::new(),
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
        node.steps.push(StepReport {
            action: action.verb(),
            status,
            attempts: report.attempts,
            started: report.started.map(|started| started.as_secs_f64()),
            seconds: report.duration.as_secs_f64(),
            note: report.value.as_ref().and_then(|value| value.note.clone()),
        });
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
        Status::Skipped(SkipReason::DependencyFailed { task }) => vec![format!("`{}` failed", culprit(task))],
        Status::Skipped(SkipReason::StoppedBy { task }) => {
            vec![format!("the run stopped when `{}` failed", culprit(task))]
        }
        Status::Skipped(reason) => vec![reason.to_string()],
        Status::Failed(Failure::Error { chain } | Failure::TimedOut { chain, .. }) if !chain.is_empty() => {
            chain.clone()
        }
        Status::Failed(Failure::Cancelled) => vec!["cut off; run again to heal what it left".to_owned()],
        Status::Failed(failure) => vec![failure.to_string()],
    }
}

/// Skipped nodes do not count, except that a run which was cut short is not done.
fn exit_code(nodes: &[NodeReport], cut_short: bool) -> ExitCode {
    let count = |status| nodes.iter().filter(|node| node.status == status).count();
    let succeeded = count(NodeStatus::Changed) + count(NodeStatus::Unchanged);
    let failed = count(NodeStatus::Failed) + count(NodeStatus::Unfinished);
    let late = nodes.iter().filter(|node| node.status == NodeStatus::Failed && node.timed_out).count();
    match (succeeded, failed) {
        (_, 0) if !cut_short => ExitCode::Done,
        (0, _) if failed > 0 && late == failed => ExitCode::TimedOut,
        (0, _) => ExitCode::Failed,
        _ => ExitCode::Partly,
    }
}

/// A line per node, then what to try for each failure, then the counts. What providers said is shown without what could
/// move a terminal's cursor; the JSON has it as it was.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<&str> = self.hosts.iter().map(HostName::as_str).collect();
        writeln!(f, "{} {} on {} (run {})\n", self.verb, self.manifest, hosts.join(", "), self.run)?;
        let width = self.nodes.iter().map(|node| node.identity.node.as_str().len()).max().unwrap_or(0);
        for node in &self.nodes {
            write_node(f, node, width)?;
        }
        if let Some(error) = &self.journal_error {
            writeln!(f, "\nthe journal could not be written: {}", one_line(error))?;
        }
        write_summary(f, self)
    }
}

fn write_node(f: &mut fmt::Formatter<'_>, node: &NodeReport, width: usize) -> fmt::Result {
    let (symbol, word) = match node.status {
        NodeStatus::Changed => ('~', "changed"),
        NodeStatus::Unchanged => ('=', "unchanged"),
        NodeStatus::Failed => ('!', "failed"),
        NodeStatus::Skipped => ('-', "skipped"),
        NodeStatus::Unfinished => ('?', "unfinished"),
    };
    let done = node.steps.iter().filter(|step| step.status == NodeStatus::Changed);
    let done: Vec<String> = done.map(|step| format!("{} {:.1}s", step.action, step.seconds)).collect();
    let about = [node.why.join(": "), done.join(", ")].into_iter().filter(|part| !part.is_empty());
    let about = about.collect::<Vec<_>>().join("; ");
    let line = format!("  {symbol} {word:10} {:width$}  {}", node.identity.node.as_str(), one_line(&about));
    writeln!(f, "{}", line.trim_end())?;
    for note in node.steps.iter().filter_map(|step| step.note.as_ref()) {
        writeln!(f, "      note: {}", one_line(note))?;
    }
    match &node.hint {
        Some(hint) => writeln!(f, "      hint: {}", one_line(hint)),
        None => Ok(()),
    }
}

fn write_summary(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let plural = if report.nodes.len() == 1 { "" } else { "s" };
    write!(f, "\n{} node{plural}:", report.nodes.len())?;
    let shown = [
        (NodeStatus::Changed, "changed"),
        (NodeStatus::Unchanged, "unchanged"),
        (NodeStatus::Failed, "failed"),
        (NodeStatus::Skipped, "skipped"),
        (NodeStatus::Unfinished, "unfinished"),
    ];
    let mut separator = " ";
    for (status, word) in shown {
        let count = report.count(status);
        if count > 0 {
            write!(f, "{separator}{count} {word}")?;
            separator = ", ";
        }
    }
    write!(f, " · {:.1}s", report.duration().as_secs_f64())?;
    match report.state {
        RunState::Finished if report.interrupted => f.write_str(" · interrupted"),
        RunState::Finished => Ok(()),
        RunState::Running => f.write_str(" · still running"),
        RunState::Killed => f.write_str(" · killed; run again to heal what it left"),
    }
}
