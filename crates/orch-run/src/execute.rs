//! One program on many nodes at once, and what each said.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orch_model::{Fleet, Identity, Node, Problems};
use orch_plan::{Observed, Selection};
use serde::{Serialize, Serializer};
use tokio::sync::Semaphore;

use crate::doors::{Doors, Presence, at_once, picked};
use crate::report::ExitCode;
use crate::transport::{Door, Ended, Target, TransportError};

/// How much longer than its limit a program may seem to take before nobody waits for the answer any more.
const GRACE: Duration = Duration::from_secs(5);

/// What a program did on every node that was asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Execution {
    /// The exit code that says it all.
    pub exit_code: ExitCode,
    /// Every node, in the fleet's order.
    pub nodes: Vec<NodeExecution>,
}

/// What a program did on one node.
#[derive(Debug, Clone, Serialize)]
pub struct NodeExecution {
    /// The node.
    pub identity: Identity,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: ExecOutcome,
}

/// How a program on a node ended, if it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ExecOutcome {
    /// It came to its end.
    Ended {
        /// Its exit code; none where a signal ended it.
        code: Option<i32>,
        /// What it wrote to standard output.
        #[serde(serialize_with = "as_text")]
        stdout: Vec<u8>,
        /// What it wrote to standard error.
        #[serde(serialize_with = "as_text")]
        stderr: Vec<u8>,
    },
    /// It took too long.
    TimedOut,
    /// It could not be run, or the connection was lost.
    Failed {
        /// Why.
        why: String,
        /// What to try.
        hint: String,
    },
    /// The node does not run, so nothing was tried.
    Skipped {
        /// What it is instead.
        why: String,
    },
}

impl ExecOutcome {
    /// Whether it ended, and well.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Ended { code: Some(0), .. })
    }
}

/// `exit 0`, `too late`, `failed: …`.
impl fmt::Display for ExecOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { code: Some(code), .. } => write!(f, "exit {code}"),
            Self::Ended { code: None, .. } => f.write_str("ended by a signal"),
            Self::TimedOut => f.write_str("not done in time"),
            Self::Failed { why, .. } => write!(f, "failed: {why}"),
            Self::Skipped { why } => write!(f, "skipped: it {why}"),
        }
    }
}

impl Execution {
    /// Runs `argv` on every node that is picked and runs, on as many at once as the fleet's settings say, each for at most
    /// `limit`. Fails only where the selection picks nodes that the fleet does not have.
    pub async fn of(
        fleet: &Fleet,
        only: &Selection,
        observed: &Observed,
        doors: &Doors,
        argv: &[String],
        limit: Duration,
    ) -> Result<Self, Problems> {
        let argv: Arc<[String]> = argv.into();
        let nodes = picked(fleet, only)?;
        let turns = Arc::new(Semaphore::new(fleet.settings.parallelism.max(1)));
        let runs = nodes.iter().map(|node| {
            let way = way_into(fleet, node, observed, doors);
            let (turns, run) =
                (Arc::clone(&turns), execute(node.identity.clone(), way, Arc::clone(&argv), limit));
            async move {
                let _turn = turns.acquire().await.expect("the semaphore is never closed");
                run.await
            }
        });
        let runs = at_once(runs).await.into_iter().zip(&nodes);
        let nodes: Vec<_> = runs.map(|(run, node)| run.unwrap_or_else(|| lost(node))).collect();
        Ok(Self { exit_code: exit_code(nodes.iter().map(|node| &node.outcome)), nodes })
    }
}

fn lost(node: &Node) -> NodeExecution {
    let outcome = ExecOutcome::Failed {
        why: "whoever ran it stopped without an answer".to_owned(),
        hint: "run it again, and tell the makers of orch".to_owned(),
    };
    NodeExecution { identity: node.identity.clone(), seconds: 0.0, outcome }
}

type Way = Result<(Target, Arc<dyn Door>), String>;

fn way_into(fleet: &Fleet, node: &Node, observed: &Observed, doors: &Doors) -> Way {
    let presence = Presence::of(fleet, &node.identity, observed);
    let target = presence.target(node).ok_or_else(|| presence.why_not().to_owned())?;
    let door = doors.get(&node.identity.host).ok_or_else(|| "has no way in".to_owned())?;
    Ok((target, Arc::clone(door)))
}

async fn execute(identity: Identity, way: Way, argv: Arc<[String]>, limit: Duration) -> NodeExecution {
    let (target, door) = match way {
        Err(why) => return NodeExecution { identity, seconds: 0.0, outcome: ExecOutcome::Skipped { why } },
        Ok(way) => way,
    };
    let began = Instant::now();
    let ended = tokio::time::timeout(limit + GRACE, door.exec(&target, &argv, limit)).await;
    let took = began.elapsed();
    NodeExecution { identity, seconds: took.as_secs_f64(), outcome: outcome(ended.ok(), took >= limit) }
}

fn outcome(ended: Option<Result<Ended, TransportError>>, is_late: bool) -> ExecOutcome {
    match ended {
        Some(Ok(Ended { code, stdout, stderr })) => ExecOutcome::Ended { code, stdout, stderr },
        Some(Err(error)) if !is_late => ExecOutcome::Failed { why: error.to_string(), hint: error.hint() },
        Some(Err(_)) | None => ExecOutcome::TimedOut,
    }
}

/// Nodes that do not run do not count. All well is 0, some well is 2; none is 4 where all were late, else 1.
fn exit_code<'o>(outcomes: impl IntoIterator<Item = &'o ExecOutcome>) -> ExitCode {
    let (mut tried, mut well, mut late) = (0, 0, 0);
    for outcome in outcomes {
        tried += usize::from(!matches!(outcome, ExecOutcome::Skipped { .. }));
        well += usize::from(outcome.is_success());
        late += usize::from(*outcome == ExecOutcome::TimedOut);
    }
    match (tried, well) {
        (0, _) => ExitCode::Failed,
        (tried, well) if tried == well => ExitCode::Done,
        (tried, 0) if late == tried => ExitCode::TimedOut,
        (_, 0) => ExitCode::Failed,
        _ => ExitCode::Partly,
    }
}

fn as_text<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32) -> ExecOutcome {
        ExecOutcome::Ended { code: Some(code), stdout: Vec::new(), stderr: Vec::new() }
    }

    #[test]
    fn the_exit_code_says_all_some_none_or_late() {
        let skipped = || ExecOutcome::Skipped { why: "is stopped".to_owned() };
        let failed = || ExecOutcome::Failed { why: "lost".to_owned(), hint: "again".to_owned() };
        let late = || ExecOutcome::TimedOut;
        let cases: [(Vec<ExecOutcome>, u8); 11] = [
            (vec![], 1),
            (vec![skipped()], 1),
            (vec![ended(0)], 0),
            (vec![ended(0), skipped()], 0),
            (vec![ended(7)], 1),
            (vec![ended(0), ended(1)], 2),
            (vec![ended(0), late()], 2),
            (vec![late(), late()], 4),
            (vec![late(), skipped()], 4),
            (vec![late(), ended(1)], 1),
            (vec![failed()], 1),
        ];
        for (outcomes, expected) in cases {
            assert_eq!(u8::from(exit_code(&outcomes)), expected, "{outcomes:?}");
        }
    }
}
