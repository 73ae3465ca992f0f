//! What became of a run, from its journal: every node of the plan with exactly one status.

mod gate;
mod html;
mod render;
mod tell;

use std::time::Duration;

use jiff::Timestamp;
use orch_model::{Digest, HostName, Identity, ManifestName, SiteName};
use orch_plan::Verb;
use serde::Serialize;

use crate::journal::{Entry, RunId};
use crate::leaks::Left;
use crate::lock::is_alive;
use crate::runner::steps;
pub use gate::GateReport;
use gate::gates;
use tell::{Told, node_reports};

/// Of a machine whose taking down began and did not end.
pub(crate) const CUT_WHILE_TAKEN_DOWN: &str = "the run ended while it was being taken down";

/// Of a node whose way back began and did not end.
pub(crate) const CUT_WHILE_TAKEN_BACK: &str = "the run ended while it was being taken back";

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

impl ExitCode {
    /// What it says, in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Partly => "partly",
            Self::Invalid => "invalid",
            Self::TimedOut => "out of time",
        }
    }
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

impl NodeStatus {
    /// What it says, in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Unfinished => "unfinished",
        }
    }
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
    /// Who had it pause and since when, while it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// By whom or why it was ended early, where that was not by a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted: Option<String>,
    /// Whether what it made was taken down again, all of it.
    pub rolled_back: bool,
    /// Why the journal could not be written, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_error: Option<String>,
    /// Every node of the plan, in its order.
    pub nodes: Vec<NodeReport>,
    /// The gates between batches that were come to, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateReport>,
    /// What bears the marks of these nodes still, after they were taken down, and which hosts could not be looked over.
    #[serde(skip_serializing_if = "Left::is_nothing")]
    pub left: Left,
}

/// A run that begins nothing new for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Paused {
    /// Who asked for it.
    pub by: String,
    /// Since when.
    pub since: Timestamp,
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
    /// The last lines of what tells more about a failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What to try next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether a time limit was the cause.
    pub timed_out: bool,
    /// Its steps.
    pub steps: Vec<StepReport>,
}

impl NodeReport {
    /// The verb of the step that failed, where one did.
    pub fn failed_step(&self) -> Option<&'static str> {
        self.steps.iter().find(|step| step.status == NodeStatus::Failed).map(|step| step.action)
    }
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
        let steps = steps(plan);
        let nodes = node_reports(plan, &steps, &told);
        let state = match told.finished_at {
            Some(_) => RunState::Finished,
            None if is_alive(*pid, *started) => RunState::Running,
            None => RunState::Killed,
        };
        let rolled_back = told.is_rolled_back();
        let left = told.left.cloned().unwrap_or_default();
        let exit_code = match state {
            RunState::Running => None,
            RunState::Finished | RunState::Killed if rolled_back || told.is_returned() => {
                Some(ExitCode::Failed)
            }
            RunState::Finished => match exit_code(&nodes, told.interrupted) {
                ExitCode::Done if !left.is_nothing() => Some(ExitCode::Partly),
                code => Some(code),
            },
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
            paused: told.paused.clone().filter(|_| state == RunState::Running),
            aborted: told.aborted.map(str::to_owned),
            rolled_back,
            journal_error: None,
            nodes,
            gates: gates(plan, &steps, &told),
            left,
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
