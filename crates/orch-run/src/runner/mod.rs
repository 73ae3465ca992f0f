//! Carries a plan out on the task engine: intent before effect, effect, a fresh look, and only then "done".

mod carry_out;
mod keys;
mod pull;
mod rollback;
mod steps;

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use orch_dag::{
    Control, Failure, Hooks, OnError as DagOnError, Retry, Runner, SkipReason, Status, TaskReport,
};
use orch_model::{Identity, OnError};
use orch_plan::{Plan, Verb};

use crate::journal::{Entry, RunJournal, StepValue};
use crate::leaks::Left;
use crate::permit::Permit;
use crate::provider::Places;
use crate::registry::Registry;
use crate::report::Report;
use crate::treasury::Treasury;
pub(crate) use carry_out::REFUSED_HINT;
use carry_out::Work;
pub(crate) use steps::{Step, steps};

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
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(30),
            retries: 3,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(10),
        }
    }
}

/// Is told what is being done to a node; it must be quick.
pub type Watch = Arc<dyn Fn(&Identity, &str) + Send + Sync>;

/// With what a plan is carried out.
pub struct Means {
    /// The hosts.
    pub places: Places,
    /// Leave to change them.
    pub permit: Permit,
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
    /// How long things are waited for.
    pub patience: Patience,
}

/// Carries a plan out and tells what became of it. The report is complete whatever happens.
pub async fn run(plan: &Plan, means: Means) -> Report {
    let steps = steps(plan);
    let journal = Arc::clone(&means.journal);
    let (control, hooks) = (means.control.clone(), Arc::clone(&means.hooks));
    let work = Arc::new(Work::new(plan, &means));
    let outcomes = match refused_from_the_start(plan, &steps) {
        Some(outcomes) => outcomes,
        None => engine(plan, &steps, &work, means).await,
    };
    close(&journal, &outcomes).await;
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

/// What the engine said of each step.
struct Outcomes {
    tasks: Vec<Arc<TaskReport<StepValue>>>,
    journal_error: Option<String>,
}

async fn engine(plan: &Plan, steps: &[Step<'_>], work: &Arc<Work>, means: Means) -> Outcomes {
    let strategy = match plan.on_error {
        OnError::Stop | OnError::Rollback => DagOnError::Stop,
        OnError::Continue => DagOnError::Continue,
    };
    let mut tasks = orch_dag::Plan::new(format!("{} {}", plan.verb, plan.manifest)).on_error(strategy);
    let retry = retry(&means.patience);
    let mut ids = Vec::with_capacity(steps.len());
    for step in steps {
        let (work, node) = (Arc::clone(work), &plan.nodes[step.node]);
        let (identity, action) = (node.identity.clone(), step.action.cloned());
        let refused = node.is_refused().then(|| node.why.join("; "));
        let task = tasks.task(step.name.as_str(), move |context| {
            let (work, identity, action) = (Arc::clone(&work), identity.clone(), action.clone());
            let refused = refused.clone();
            async move { work.step(&identity, action.as_ref(), refused, context.attempt()).await }
        });
        task.after_all(step.after.iter().map(|place| ids[*place])).retry(retry);
        ids.push(task.id());
    }
    let runner = Runner::new().limit(plan.parallelism).control(means.control).hooks(means.hooks);
    let runner = runner.journal(means.journal);
    let report = runner.run(tasks).await.expect("the steps of a plan have distinct names and no cycle");
    Outcomes { tasks: report.tasks, journal_error: report.journal_error }
}

fn retry(patience: &Patience) -> Retry {
    Retry::times(patience.retries).initial(patience.first_wait).cap(patience.longest_wait)
}

/// Where a node must not be touched and a failure stops the run, nothing is started at all: better than to stop half-way
/// for a reason that was known before.
fn refused_from_the_start(plan: &Plan, steps: &[Step<'_>]) -> Option<Outcomes> {
    let refused = |step: &&Step<'_>| plan.nodes[step.node].is_refused();
    let first = steps.iter().find(refused).filter(|_| plan.on_error != OnError::Continue)?;
    let stopped = Status::Skipped(SkipReason::StoppedBy { task: first.name.as_str().into() });
    let tasks = steps.iter().map(|step| {
        let node = &plan.nodes[step.node];
        let status = if node.is_refused() {
            Status::Failed(Failure::Error { chain: vec![node.why.join("; ")] })
        } else {
            stopped.clone()
        };
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
