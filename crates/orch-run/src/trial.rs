//! `test`: create, verify, destroy, as three phases of one report, under one set of locks.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use orch_dag::Control;
use orch_model::{Fleet, NodeName, Problems};
use orch_plan::{Goal, Observed, Plan, Selection, Verb, plan};
use serde::Serialize;
use thiserror::Error;

use crate::doors::Doors;
use crate::driver::Driver;
use crate::journal::{JournalFileError, RunId};
use crate::log::one_line;
use crate::report::{ExitCode, Report};
use crate::runner::with_causes;
use crate::status::Standing;

/// What became of a trial.
#[derive(Debug, Clone, Serialize)]
pub struct TrialReport {
    /// The worst of the phases' exit codes.
    pub exit_code: ExitCode,
    /// Why what it made was left as it is, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// The phases, in order; one that was not begun is not among them.
    pub phases: Vec<Phase>,
}

/// One phase of a trial.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum Phase {
    /// The nodes were made.
    Create {
        /// How.
        report: Report,
    },
    /// The nodes were asked what they are.
    Verify {
        /// What they said.
        status: Standing,
    },
    /// The nodes were taken down.
    Destroy {
        /// How.
        report: Report,
    },
}

/// A trial could not go on.
#[derive(Debug, Error)]
pub enum TrialError {
    /// A journal could not be begun.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// The selection picks nodes that the fleet does not have.
    #[error("{0}")]
    Problems(Problems),
}

/// What a trial is about.
pub struct Trial<'a> {
    /// The nodes and what they should be.
    pub fleet: &'a Fleet,
    /// Which of them.
    pub only: &'a Selection,
    /// The way into them.
    pub doors: &'a Doors,
    /// How long a node may take to say what it is.
    pub deadline: Duration,
}

impl Trial<'_> {
    /// The nodes that are there already: a trial would destroy them, though it did not make them.
    pub fn in_the_way(&self, observed: &Observed) -> Result<Vec<NodeName>, Problems> {
        let plan = plan(self.fleet, observed, &self.goal(Verb::Destroy))?;
        Ok(plan.nodes.iter().filter(|node| !node.is_noop()).map(|node| node.name().clone()).collect())
    }

    fn goal(&self, verb: Verb) -> Goal {
        Goal { only: self.only.clone(), ..Goal::of(verb) }
    }

    /// Carries `plan` out as a run of this name, asks the nodes what they are, and takes them down again: also after a
    /// failure, unless the manifest says otherwise. Whoever stops it stops the making; what was made is still taken
    /// down, and only a cancel keeps that from being done.
    pub async fn run(&self, driver: &Driver, name: RunId, plan: &Plan) -> Result<TrialReport, TrialError> {
        let mut phases = vec![Phase::Create { report: driver.run(name, plan).await? }];
        if worst(&phases) == ExitCode::Done {
            phases.push(Phase::Verify { status: self.verify(driver).await? });
        }
        if worst(&phases) != ExitCode::Done && !self.fleet.settings.cleanup_on_failure {
            let left = Some("the manifest says `cleanup_on_failure: false`".to_owned());
            return Ok(TrialReport { exit_code: worst(&phases), left, phases });
        }
        match self.destroy(driver).await {
            Ok(report) => {
                phases.push(Phase::Destroy { report });
                Ok(TrialReport { exit_code: worst(&phases), left: None, phases })
            }
            // What is known by now is worth more than the error alone.
            Err(error) => {
                Ok(TrialReport { exit_code: ExitCode::Failed, left: Some(with_causes(&error)), phases })
            }
        }
    }

    async fn verify(&self, driver: &Driver) -> Result<Standing, TrialError> {
        let observed = driver.look().await;
        let standing = Standing::of(self.fleet, self.only, &observed, self.doors, self.deadline);
        standing.await.map_err(TrialError::Problems)
    }

    async fn destroy(&self, driver: &Driver) -> Result<Report, TrialError> {
        let observed = driver.look().await;
        let plan = plan(self.fleet, &observed, &self.goal(Verb::Destroy)).map_err(TrialError::Problems)?;
        let own = Driver { control: Control::new(), ..driver.clone() };
        let mut run = pin!(own.run(RunId::new(), &plan));
        let report = tokio::select! {
            biased;
            () = driver.control.cancelled() => {
                own.control.cancel();
                run.await
            }
            report = &mut run => report,
        };
        Ok(report?)
    }
}

impl Phase {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Verify { .. } => "verify",
            Self::Destroy { .. } => "destroy",
        }
    }

    /// Its exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Create { report } | Self::Destroy { report } => {
                report.exit_code.unwrap_or(ExitCode::Failed)
            }
            Self::Verify { status } => status.exit_code,
        }
    }
}

/// The worst exit code of all phases. One that failed in part is better than one that was late, and that is better than
/// one that failed.
fn worst(phases: &[Phase]) -> ExitCode {
    phases.iter().map(Phase::exit_code).max_by_key(|code| badness(*code)).unwrap_or(ExitCode::Done)
}

const fn badness(code: ExitCode) -> u8 {
    match code {
        ExitCode::Done => 0,
        ExitCode::Partly => 1,
        ExitCode::TimedOut => 2,
        ExitCode::Failed => 3,
        ExitCode::Invalid => 4,
    }
}

/// The phases one below the other, each with what became of it.
impl fmt::Display for TrialReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, phase) in self.phases.iter().enumerate() {
            writeln!(f, "{}. {}: {}", number + 1, phase.name(), phase.exit_code().word())?;
            match phase {
                Phase::Create { report } | Phase::Destroy { report } => writeln!(f, "{report}\n")?,
                Phase::Verify { status } => writeln!(f, "{status}\n")?,
            }
        }
        if let Some(why) = &self.left {
            writeln!(f, "what was made is left as it is: {}", one_line(why))?;
        }
        write!(f, "test: {}", self.exit_code.word())
    }
}
