//! The way from a plan to a report: checks, takes over what an earlier run ended, sets workers to the rest.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::control::{Control, Signal};
use crate::graph::{self, Graph};
use crate::hooks::Hooks;
use crate::journal::{Journal, Resume};
use crate::plan::Plan;
use crate::problem::PlanError;
use crate::report::Report;
use crate::results::{Names, Results};
use crate::run::{Run, Settings};
use crate::scheduler::Scheduler;
use crate::task_report::TaskReport;
use crate::worker;

/// How a plan is run. Must be used within a Tokio runtime; timeouts, retries and grace need its clock.
pub struct Runner<T = ()> {
    limit: Option<usize>,
    settings: Settings<T>,
    journal: Option<Arc<dyn Journal<T>>>,
    control: Control,
    resume: Resume<T>,
}

impl<T: Send + Sync + 'static> Runner<T> {
    /// No limit, no hooks, no journal, no grace.
    pub fn new() -> Self {
        let seed = RandomState::new().hash_one(());
        let settings = Settings { hooks: Vec::new(), journal: None, grace: Duration::ZERO, seed };
        Self { limit: None, settings, journal: None, control: Control::new(), resume: Resume::new([]) }
    }

    /// At most this many tasks at once, at least one. A task that waits for its retry counts.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit.max(1));
        self
    }

    /// Adds hooks; those added first are called first.
    pub fn hooks(mut self, hooks: impl Hooks<T> + 'static) -> Self {
        self.settings.hooks.push(Box::new(hooks));
        self
    }

    /// Writes down what starts and ends.
    pub fn journal(mut self, journal: impl Journal<T> + 'static) -> Self {
        let journal: Arc<dyn Journal<T>> = Arc::new(journal);
        self.settings.journal = Some(Arc::downgrade(&journal));
        self.journal = Some(journal);
        self
    }

    /// Takes over what an earlier run of the same plan ended.
    ///
    /// What is taken over is not journalled again: give the journal that it was read from, to be continued.
    pub fn resume(mut self, resume: Resume<T>) -> Self {
        self.resume = resume;
        self
    }

    /// Listens to a handle that ends the run early.
    pub fn control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// How long cancelled tasks may go on, to clean up after [`Context::cancelled`](crate::Context::cancelled).
    ///
    /// One that still succeeds is reported so, every other as cancelled. Zero, the default, drops them at once.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// Makes the jitter of retries repeatable.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Runs the plan. An error means that nothing was started; whatever happens later is in the report.
    ///
    /// Dropping the returned future cancels the run.
    pub async fn run(self, plan: Plan<T>) -> Result<Report<T>, PlanError> {
        let mut resolved = graph::resolve(&plan);
        resolved.problems.extend(self.resume.problems(&resolved.names));
        plan.verdict(resolved.problems)?;

        let ended = self.resume.ended(&resolved.names, &resolved.graph);
        let resumed = ended.iter().map(|(_, report)| report.name.clone()).collect();
        // Kept by this future alone: when it is over, or dropped, so is the journal.
        let _journal = self.journal.clone();
        let run = Arc::new(self.prepare(plan, resolved.names, resolved.graph, ended));
        let _cancel = CancelOnDrop(run.signal.own.clone());
        run.tell(|hooks| hooks.before_plan(&run.plan));
        if run.is_open() {
            worker::work_off(&run).await;
        }
        Ok(conclude(&run, resumed))
    }

    fn prepare(
        self,
        plan: Plan<T>,
        names: Names,
        graph: Graph,
        ended: Vec<(usize, Arc<TaskReport<T>>)>,
    ) -> Run<T> {
        let results = Results::new(names);
        let failed: Vec<usize> =
            ended.iter().filter(|(_, report)| report.status.is_failed()).map(|(index, _)| *index).collect();
        for (index, report) in ended {
            results.set(index, report);
        }
        let scheduler = Scheduler::new(&graph, |index| results.at(index).is_some(), self.limit);
        let run = Run {
            plan,
            graph,
            results,
            signal: Signal { given: self.control, own: Control::new() },
            settings: self.settings,
            scheduler: Mutex::new(scheduler),
            over: Notify::new(),
            began: Instant::now(),
            stopped: OnceLock::new(),
            journal_error: OnceLock::new(),
        };
        // A failure that was taken over means what it meant: a resumed run ends as the uncut one would have.
        for index in failed {
            run.apply_strategy(index);
        }
        run
    }
}

fn conclude<T>(run: &Run<T>, resumed: BTreeSet<Arc<str>>) -> Report<T> {
    run.sweep();
    let report = run.report(resumed);
    run.tell(|hooks| hooks.after_plan(&report));
    report
}

impl<T: Send + Sync + 'static> Default for Runner<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Workers are tasks of the runtime and would go on without the future that waits for them.
struct CancelOnDrop(Control);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
