//! Carries a plan out on the task engine: intent before effect, effect, a fresh look, and only then "done".

mod carry_out;
mod gate;
mod heed;
mod keys;
mod lease;
mod pull;
mod revert;
mod rollback;
mod step_error;
mod steps;

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use orch_dag::{
    Control, Failure, Hooks, OnError as DagOnError, Retry, Runner, SkipReason, Status, Task, TaskReport,
};
use orch_model::{Identity, OnError};
use orch_plan::{NodePlan, Plan, Verb};

use crate::doors::Doors;
use crate::journal::{Entry, RunJournal, StepValue};
use crate::leaks::Left;
use crate::permit::Permit;
use crate::provider::Places;
use crate::registry::Registry;
use crate::report::Report;
use crate::treasury::Treasury;
use carry_out::Work;
pub(crate) use gate::FEW_FAILED;
use gate::{Gates, Tally};
use heed::Attendant;
pub(crate) use step_error::REFUSED_HINT;
pub(crate) use steps::{Step, Subject, steps};

/// How long and how often things are waited for, beyond what the plan says of its phases.
#[derive(Debug, Clone)]
pub struct Patience {
    /// How long a fresh look at a host may take.
    pub look: Duration,
    /// How often a step is tried again whose answer was lost.
    pub retries: u32,
    /// How long to wait before the first of those; doubled each time.
    pub first_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// How long a NixOS system may take to be built and copied, besides what giving a node its configuration may take.
    pub prepare: Duration,
    /// How long a node stays the run's alone where it is not asked for again; it is, three times in that time.
    pub lease: Duration,
    /// How often it is looked whether somebody wants the run to pause, to go on or to end.
    pub heed: Duration,
    /// How long a run stays paused before it ends.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(30),
            retries: 3,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(10),
            prepare: Duration::from_mins(135),
            lease: Duration::from_mins(1),
            heed: Duration::from_millis(500),
            pause: Duration::from_hours(1),
        }
    }
}

/// Is told what is being done to a node; it must be quick.
pub type Watch = Arc<dyn Fn(&Identity, &str) + Send + Sync>;

/// Is told what concerns a run as a whole; it must be quick.
pub type Herald = Arc<dyn Fn(&str) + Send + Sync>;

/// With what a plan is carried out.
pub struct Means {
    /// The hosts.
    pub places: Places,
    /// Leave to change them.
    pub permit: Permit,
    /// The ways into nodes, by which they are asked between two batches how they are.
    pub doors: Doors,
    /// Who knows the nodes that fetch their configuration themselves, where there are any.
    pub registry: Option<Arc<dyn Registry>>,
    /// Who can open the secrets of the site.
    pub treasury: Arc<dyn Treasury>,
    /// Where everything is written down.
    pub journal: Arc<RunJournal>,
    /// How the run is stopped from outside: `stop` starts nothing new, `cancel` also cuts off what runs. A rollback is
    /// started after a `stop` as well, and cut off by a `cancel`.
    pub control: Control,
    /// Who is told while it goes on. A rollback is a second plan to them.
    pub hooks: Arc<dyn Hooks<StepValue>>,
    /// Who is told what a step is doing while it does it.
    pub watch: Watch,
    /// Who is told what concerns the run as a whole.
    pub herald: Herald,
    /// How long things are waited for.
    pub patience: Patience,
}

/// Carries a plan out and tells what became of it. The report is complete whatever happens.
pub async fn run(plan: &Plan, means: Means) -> Report {
    let steps = steps(plan);
    let journal = Arc::clone(&means.journal);
    let (control, hooks) = (means.control.clone(), Arc::clone(&means.hooks));
    let attendant = Attendant::listen(&journal, &control, &means.herald, &means.patience);
    let work = Arc::new(Work::new(plan, &means));
    let refused = |node: &NodePlan| node.is_refused().then(|| node.why.join("; "));
    let outcomes = match not_begun(plan, &steps, refused).filter(|_| plan.on_error != OnError::Continue) {
        Some(outcomes) => {
            close(&journal, &outcomes).await;
            outcomes
        }
        None => under_leases(plan, &steps, &work, means).await,
    };
    attendant.end().await;
    if calls_for_rollback(plan, &outcomes) {
        rollback::roll_back(plan, &work, &control, hooks).await;
    }
    if plan.verb == Verb::Destroy {
        Left::tidy(plan, work.places(), &work.permit, work.patience().look).await;
        let left = Left::after(plan, work.places(), work.patience().look).await;
        // The report is made from memory; a journal that cannot be written is told below.
        let _ = journal.append(Entry::LookedOver { at: Timestamp::now(), left }).await;
    }
    let finished = journal.append(Entry::Finished { at: Timestamp::now() }).await;
    let journal_error = outcomes.journal_error.or_else(|| finished.err().map(|error| with_causes(&error)));
    let report = Report::of(&journal.entries()).expect("a journal begins with its plan");
    match journal_error {
        Some(error) => report.unwritten(error),
        None => report,
    }
}

/// Has the nodes to the run alone while its steps are taken, and while they are taken back where that is called for.
async fn under_leases(plan: &Plan, steps: &[Step<'_>], work: &Arc<Work>, means: Means) -> Outcomes {
    let (control, hooks) = (means.control.clone(), Arc::clone(&means.hooks));
    let leases = match lease::ask(plan, work).await {
        lease::Asked::Granted(leases) => leases,
        lease::Asked::Refused(why) => {
            work.advise_all(why.keys(), lease::IN_USE_HINT).await;
            let outcomes = not_begun(plan, steps, |node| why.get(&node.identity).cloned());
            let outcomes = outcomes.expect("a node that is refused is a node of the plan");
            close(&work.journal(), &outcomes).await;
            return outcomes;
        }
    };
    let tally = plan.stages.as_ref().map(Tally::of);
    let outcomes = engine(plan, steps, work, means, tally.as_ref()).await;
    close(&work.journal(), &outcomes).await;
    if calls_for_return(plan, &outcomes, tally.as_deref()) {
        let moved = revert::moved(plan, steps, &outcomes.tasks, work);
        revert::take_back(plan, work, moved, &control, hooks).await;
    }
    leases.end(plan, work).await;
    outcomes
}

/// An error and its causes, in one line.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Whether what the run made is to be taken down: something failed by itself. Whoever cut the run off wants it to end,
/// and not to begin anything else.
fn calls_for_rollback(plan: &Plan, outcomes: &Outcomes) -> bool {
    let is_cut_off = |task: &Arc<TaskReport<StepValue>>| task.status == Status::Failed(Failure::Cancelled);
    plan.on_error == OnError::Rollback
        && plan.verb == Verb::Create
        && outcomes.tasks.iter().any(|task| task.status.is_failed())
        && !outcomes.tasks.iter().any(is_cut_off)
}

/// Whether nodes that were moved to another system are taken back: more failed than may, and nobody cut the run off.
fn calls_for_return(plan: &Plan, outcomes: &Outcomes, tally: Option<&Tally>) -> bool {
    let is_cut_off = |task: &Arc<TaskReport<StepValue>>| task.status == Status::Failed(Failure::Cancelled);
    plan.stages.as_ref().is_some_and(|stages| stages.rollback_succeeded)
        && tally.is_some_and(Tally::is_exceeded)
        && !outcomes.tasks.iter().any(is_cut_off)
}

/// What the engine said of each step.
struct Outcomes {
    tasks: Vec<Arc<TaskReport<StepValue>>>,
    journal_error: Option<String>,
}

async fn engine(
    plan: &Plan,
    steps: &[Step<'_>],
    work: &Arc<Work>,
    means: Means,
    tally: Option<&Arc<Tally>>,
) -> Outcomes {
    let strategy = match plan.on_error {
        // What a failure means between batches is what the gates say.
        _ if plan.stages.is_some() => DagOnError::Continue,
        OnError::Stop | OnError::Rollback => DagOnError::Stop,
        OnError::Continue => DagOnError::Continue,
    };
    let mut tasks = orch_dag::Plan::new(format!("{} {}", plan.verb, plan.manifest)).on_error(strategy);
    let retry = retry(&means.patience);
    let mut gates = Gates::of(plan, steps, &means.doors, work, tally);
    let mut ids = Vec::with_capacity(steps.len());
    for step in steps {
        let task = match step.subject {
            Subject::Node(place) => {
                let task = node_task(&mut tasks, &plan.nodes[place], step, work).retry(retry);
                let tally = tally.filter(|_| step.action.is_some()).map(Arc::clone);
                if let Some(tally) = tally {
                    task.when(FEW_FAILED, move |_| !tally.is_exceeded());
                }
                task
            }
            Subject::Gate(batch) => {
                let gate = gates.after(batch);
                let task = tasks.task(step.name.as_str(), move |context| {
                    let gate = Arc::clone(&gate);
                    async move { gate.pass(&context).await }
                });
                task.even_if_failed()
            }
        };
        task.after_all(step.after.iter().map(|place| ids[*place]));
        ids.push(task.id());
    }
    let runner = Runner::new().limit(plan.parallelism).control(means.control).hooks(means.hooks);
    let runner = match tally {
        Some(tally) => runner.hooks(Arc::clone(tally)),
        None => runner,
    };
    let runner = runner.journal(means.journal);
    let report = runner.run(tasks).await.expect("the steps of a plan have distinct names and no cycle");
    Outcomes { tasks: report.tasks, journal_error: report.journal_error }
}

fn node_task<'t>(
    tasks: &'t mut orch_dag::Plan<StepValue>,
    node: &NodePlan,
    step: &Step<'_>,
    work: &Arc<Work>,
) -> &'t mut Task<StepValue> {
    let work = Arc::clone(work);
    let (identity, action) = (node.identity.clone(), step.action.cloned());
    let refused = node.is_refused().then(|| node.why.join("; "));
    tasks.task(step.name.as_str(), move |context| {
        let (work, identity, action) = (Arc::clone(&work), identity.clone(), action.clone());
        let refused = refused.clone();
        async move { work.step(&identity, action.as_ref(), refused, context.attempt()).await }
    })
}

fn retry(patience: &Patience) -> Retry {
    Retry::times(patience.retries).initial(patience.first_wait).cap(patience.longest_wait)
}

/// Where a node must not be touched and a failure stops the run, nothing is started at all: better than to stop half-way
/// for a reason that was known before. Nothing where no node is refused.
fn not_begun(
    plan: &Plan,
    steps: &[Step<'_>],
    refused: impl Fn(&NodePlan) -> Option<String>,
) -> Option<Outcomes> {
    let why = |step: &Step<'_>| step.node().and_then(|place| refused(&plan.nodes[place]));
    let first = steps.iter().find(|step| why(step).is_some())?;
    let stopped = Status::Skipped(SkipReason::StoppedBy { task: first.name.as_str().into() });
    let tasks = steps.iter().map(|step| {
        let status =
            why(step).map_or(stopped.clone(), |why| Status::Failed(Failure::Error { chain: vec![why] }));
        Arc::new(unrun(&step.name, status))
    });
    Some(Outcomes { tasks: tasks.collect(), journal_error: None })
}

fn unrun(name: &str, status: Status) -> TaskReport<StepValue> {
    TaskReport {
        name: name.into(),
        status,
        attempts: 0,
        started: None,
        duration: Duration::ZERO,
        hosts: orch_dag::Hosts::new(),
        value: None,
    }
}

/// Writes down the ends that the engine did not: those of steps that the end of the run cut short or kept from starting.
async fn close(journal: &RunJournal, outcomes: &Outcomes) {
    let mut ended = BTreeSet::new();
    for entry in journal.entries() {
        if let Entry::Step { entry: orch_dag::Entry::Ended(report), .. } = entry {
            ended.insert(Arc::clone(&report.name));
        }
    }
    let by_caller = |task: &&Arc<TaskReport<StepValue>>| {
        use SkipReason::{Cancelled, Stopped};
        matches!(task.status, Status::Skipped(Stopped | Cancelled) | Status::Failed(Failure::Cancelled))
    };
    if outcomes.tasks.iter().any(|task| by_caller(&task)) {
        let cancelled = outcomes.tasks.iter().any(|task| task.status == Status::Failed(Failure::Cancelled));
        // A journal that cannot be written has been reported by now; the report is made from memory.
        let _ = journal.append(Entry::Interrupted { at: Timestamp::now(), cancelled }).await;
    }
    for task in outcomes.tasks.iter().filter(|task| !ended.contains(&task.name)) {
        let entry = orch_dag::Entry::Ended(Arc::clone(task));
        let _ = journal.append(Entry::Step { at: Timestamp::now(), entry }).await;
    }
}
