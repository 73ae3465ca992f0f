//! Between two batches: whether those who are done are well, and whether few enough failed for the next ones to begin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use orch_dag::{Context, Hooks, Outcome, TaskError, TaskReport};
use orch_model::Config;
use orch_plan::{Action, Plan, Stages};
use thiserror::Error;

use super::carry_out::Work;
use super::steps::Step;
use crate::doors::{Doors, at_once};
use crate::journal::{Entry, Ill, StepValue};
use crate::transport::{Door, Target};

/// The condition under which a node of a batch is begun.
pub(crate) const FEW_FAILED: &str = "no more nodes failed than may";

/// More nodes failed than may.
#[derive(Debug, Error)]
#[error("{}, and {} may", counted(*failed), if *may == 0 { "none".to_owned() } else { may.to_string() })]
pub(crate) struct Shut {
    failed: usize,
    may: usize,
}

fn counted(nodes: usize) -> String {
    if nodes == 1 { "1 node failed".to_owned() } else { format!("{nodes} nodes failed") }
}

/// How many nodes of a staged run failed so far.
pub(crate) struct Tally {
    failed: AtomicUsize,
    max_fail: usize,
}

impl Tally {
    pub(crate) fn of(stages: &Stages) -> Arc<Self> {
        Arc::new(Self { failed: AtomicUsize::new(0), max_fail: stages.max_fail })
    }

    /// Whether more nodes failed than may.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.failed.load(Ordering::SeqCst) > self.max_fail
    }

    fn add(&self, nodes: usize) {
        self.failed.fetch_add(nodes, Ordering::SeqCst);
    }
}

/// A node has one step that fails at most: what comes after it is not begun.
impl Hooks<StepValue> for Tally {
    fn after_task(&self, report: &TaskReport<StepValue>) {
        if report.status.is_failed() && !report.name.ends_with("/gate") {
            self.add(1);
        }
    }
}

/// The gate after one batch.
pub(super) struct Gate {
    /// The batch, counted from 1.
    batch: usize,
    members: Vec<Member>,
    tally: Arc<Tally>,
    work: Arc<Work>,
}

/// A node of the batch, by its last step.
struct Member {
    step: String,
    target: Target,
    config: Config,
    door: Option<Arc<dyn Door>>,
}

/// The gates of a run.
pub(super) struct Gates {
    members: Vec<Vec<Member>>,
    tally: Option<Arc<Tally>>,
    work: Arc<Work>,
}

impl Gates {
    pub(super) fn of(
        plan: &Plan,
        steps: &[Step<'_>],
        doors: &Doors,
        work: &Arc<Work>,
        tally: Option<&Arc<Tally>>,
    ) -> Self {
        let mut last: BTreeMap<usize, &Step<'_>> = BTreeMap::new();
        last.extend(steps.iter().filter_map(|step| Some((step.node()?, step))));
        let member = |place: &usize| {
            let (node, step) = (&plan.nodes[*place], last.get(place)?);
            let Some(Action::Configure { machine: Some(machine), config, mode }) = step.action else {
                return None;
            };
            let target = work.target(&node.identity, machine.uuid, *mode);
            let door = doors.get(&node.identity.host).cloned();
            Some(Member { step: step.name.clone(), target, config: config.clone(), door })
        };
        let batches = plan.stages.as_ref().map_or(&[][..], |stages| &stages.batches);
        let members = batches.iter().map(|batch| batch.iter().filter_map(member).collect()).collect();
        Self { members, tally: tally.cloned(), work: Arc::clone(work) }
    }

    /// The gate after the batch of this place.
    pub(super) fn after(&mut self, batch: usize) -> Arc<Gate> {
        let tally = self.tally.clone().expect("a run with gates is staged");
        let members = std::mem::take(&mut self.members[batch]);
        Arc::new(Gate { batch: batch + 1, members, tally, work: Arc::clone(&self.work) })
    }
}

impl Gate {
    /// Asks every node of the batch that is done how it is now, and counts.
    pub(super) async fn pass(&self, context: &Context<StepValue>) -> Result<Outcome<StepValue>, TaskError> {
        let is_done =
            |member: &&Member| context.result(&member.step).is_some_and(|report| report.status.is_success());
        let done: Vec<&Member> = self.members.iter().filter(is_done).collect();
        let ill = self.ill(&done).await;
        let well = done.len() - ill.len();
        self.tally.add(ill.len());
        let entry = Entry::Gate { at: Timestamp::now(), batch: self.batch, ill };
        self.work.journal().append(entry).await.map_err(|error| TaskError::new(error).no_retry())?;
        if self.tally.is_exceeded() {
            let failed = self.tally.failed.load(Ordering::SeqCst);
            return Err(TaskError::new(Shut { failed, may: self.tally.max_fail }).no_retry());
        }
        let note = format!("{well} of {} well", self.members.len());
        Ok(Outcome::unchanged().with(StepValue { note: Some(note) }))
    }

    async fn ill(&self, done: &[&Member]) -> Vec<Ill> {
        let questions = done.iter().map(|member| {
            let (work, target, config) =
                (Arc::clone(&self.work), member.target.clone(), member.config.clone());
            let door = member.door.clone();
            async move {
                let why = match door {
                    Some(door) => what_ails(&work, &*door, &target, &config).await,
                    // What it said of itself when it was configured is all that can be had.
                    None => None,
                };
                why.map(|why| Ill { node: target.identity, why })
            }
        });
        let unasked = |member: &&Member| Ill {
            node: member.target.identity.clone(),
            why: "it could not be asked how it is".to_owned(),
        };
        let answers = at_once(questions).await.into_iter().zip(done);
        answers.filter_map(|(answer, member)| answer.unwrap_or_else(|| Some(unasked(member)))).collect()
    }
}

/// What is wrong with a node; nothing where it is well. A node that does not answer is asked again, as patiently as steps are tried
/// again.
async fn what_ails(work: &Work, door: &dyn Door, target: &Target, config: &Config) -> Option<String> {
    let patience = work.patience();
    let mut wait = patience.first_wait;
    let mut tries = 0;
    loop {
        let asked = tokio::time::timeout(patience.look, door.inspect(target, config)).await;
        let why = match asked {
            Ok(Ok(inspection)) => {
                let ill = inspection.health.iter().find(|check| !check.healthy)?;
                return Some(format!("{}: {}", ill.check, ill.why.as_deref().unwrap_or("does not hold")));
            }
            Ok(Err(error)) if !error.is_passing() => return Some(error.to_string()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not say how it is within {:?}", patience.look),
        };
        if tries == patience.retries {
            return Some(why);
        }
        tries += 1;
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(patience.longest_wait);
    }
}
