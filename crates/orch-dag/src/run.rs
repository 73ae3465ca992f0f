//! One run of a plan: what its workers share, and how a task's end takes effect.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::control::{Phase, Signal};
use crate::decision;
use crate::graph::Graph;
use crate::hooks::Hooks;
use crate::journal::{Entry, Journal, JournalError};
use crate::plan::Plan;
use crate::report::Report;
use crate::results::{Dependencies, Results};
use crate::scheduler::Scheduler;
use crate::status::{SkipReason, Status};
use crate::strategy::OnError;
use crate::task_report::TaskReport;
use crate::{caught, task_error};

/// What the caller chose for a run.
pub(crate) struct Settings<T> {
    pub(crate) hooks: Vec<Box<dyn Hooks<T>>>,
    /// Weak, because contexts hold the run and may outlive it, and a journal may lock its file as long as it lives.
    pub(crate) journal: Option<Weak<dyn Journal<T>>>,
    pub(crate) grace: Duration,
    pub(crate) seed: u64,
}

/// What the workers of one run share.
pub(crate) struct Run<T> {
    pub(crate) plan: Plan<T>,
    pub(crate) graph: Graph,
    pub(crate) results: Results<T>,
    pub(crate) signal: Signal,
    pub(crate) settings: Settings<T>,
    pub(crate) scheduler: Mutex<Scheduler>,
    /// Told when the last worker leaves.
    pub(crate) over: Notify,
    pub(crate) began: Instant,
    /// Why the run stopped by itself, if it did; the first reason stands.
    pub(crate) stopped: OnceLock<SkipReason>,
    pub(crate) journal_error: OnceLock<String>,
}

impl<T> Run<T> {
    pub(crate) fn scheduler(&self) -> MutexGuard<'_, Scheduler> {
        // Nothing under the lock runs foreign code, so a poisoned one is as whole as any.
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether new tasks may start.
    pub(crate) fn is_open(&self) -> bool {
        self.signal.phase() == Phase::Running
    }

    pub(crate) fn dependencies(&self, index: usize) -> Dependencies<'_, T> {
        Dependencies { results: &self.results, indices: self.graph.dependencies.of(index) }
    }

    /// Calls one method of every hook.
    pub(crate) fn tell(&self, call: impl Fn(&dyn Hooks<T>)) {
        for hooks in &self.settings.hooks {
            // Hooks only look on: what goes wrong in one of them is not part of the run.
            let _ = caught::call(|| call(hooks.as_ref()));
        }
    }

    /// Writes to the journal. If that fails, nothing new starts.
    pub(crate) async fn journal(&self, entry: impl FnOnce() -> Entry<T>) -> Result<(), JournalError> {
        let Some(journal) = &self.settings.journal else { return Ok(()) };
        write(journal, &entry()).await.inspect_err(|error| {
            let _ = self.journal_error.set(task_error::chain(error).join(": "));
            self.stop(SkipReason::JournalFailed, Phase::Stopping);
        })
    }

    fn stop(&self, reason: SkipReason, phase: Phase) {
        if self.is_open() {
            let _ = self.stopped.set(reason);
        }
        self.signal.own.raise(phase);
    }

    /// Does to the run what the failed task's strategy asks for.
    pub(crate) fn apply_strategy(&self, index: usize) {
        let task = &self.plan.tasks[index];
        let reason = || SkipReason::StoppedBy { task: task.name.clone() };
        match task.on_error.unwrap_or(self.plan.on_error) {
            OnError::Stop => self.stop(reason(), Phase::Stopping),
            OnError::StopAll => self.stop(reason(), Phase::Cancelled),
            OnError::Continue => {}
        }
    }

    /// Makes a task's end known to the tasks after it, and to the hooks.
    pub(crate) fn publish(&self, index: usize, report: &Arc<TaskReport<T>>) {
        self.results.set(index, Arc::clone(report));
        self.tell(|hooks| match &report.status {
            Status::Skipped(reason) => hooks.on_skip(&report.name, reason),
            _ => hooks.after_task(report),
        });
    }

    /// Why a task that the run did not get to was not run.
    pub(crate) fn stop_reason(&self) -> SkipReason {
        let asked = || match self.signal.given.phase() {
            Phase::Cancelled => SkipReason::Cancelled,
            Phase::Running | Phase::Stopping => SkipReason::Stopped,
        };
        self.stopped.get().cloned().unwrap_or_else(asked)
    }

    /// Gives every task that the run did not get to its place in the report.
    pub(crate) fn sweep(&self) {
        for index in self.graph.order.iter().copied().filter(|index| self.results.at(*index).is_none()) {
            let task = &self.plan.tasks[index];
            let failed = decision::failed_dependency(task, &self.dependencies(index));
            let reason = failed.unwrap_or_else(|| self.stop_reason());
            let report = TaskReport::unrun(task.name.clone(), Status::Skipped(reason));
            self.publish(index, &Arc::new(report));
        }
    }

    pub(crate) fn report(&self, resumed: BTreeSet<Arc<str>>) -> Report<T> {
        Report {
            plan: self.plan.name.clone(),
            tasks: self.results.all(),
            duration: self.began.elapsed(),
            resumed,
            journal_error: self.journal_error.get().cloned(),
        }
    }
}

async fn write<T>(journal: &Weak<dyn Journal<T>>, entry: &Entry<T>) -> Result<(), JournalError> {
    let Some(journal) = journal.upgrade() else {
        return Err(JournalError::new("the run was dropped"));
    };
    let written = caught::run(|| journal.write(entry)).await;
    written.unwrap_or_else(|message| Err(JournalError::new(format!("panicked: {message}"))))
}
