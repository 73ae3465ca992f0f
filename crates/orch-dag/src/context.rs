//! What a task gets to know while it runs.

use std::fmt;
use std::sync::Arc;

use crate::control::Phase;
use crate::results::Results;
use crate::run::Run;
use crate::task_report::TaskReport;

/// What a task gets to know while it runs. Clones may go to whatever the task spawns.
pub struct Context<T = ()> {
    run: Arc<Run<T>>,
    index: usize,
    attempt: u32,
}

impl<T> Context<T> {
    pub(crate) fn new(run: Arc<Run<T>>, index: usize, attempt: u32) -> Self {
        Self { run, index, attempt }
    }

    /// The task's name.
    pub fn task(&self) -> &str {
        &self.run.plan.tasks[self.index].name
    }

    /// Which attempt this is; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How the tasks that have ended so far ended.
    pub fn results(&self) -> &Results<T> {
        &self.run.results
    }

    /// How the task of that name ended; see [`Results`] for which are certain to be there.
    pub fn result(&self, name: &str) -> Option<&TaskReport<T>> {
        self.results().get(name)
    }

    /// What the task of that name returned; none if it has not succeeded.
    pub fn value(&self, name: &str) -> Option<&T> {
        self.results().value(name)
    }

    /// Waits until the run is cancelled.
    ///
    /// Unless the runner was given a [`grace`](crate::Runner::grace), the task's own future is dropped at that very
    /// moment, and this is of use only to what it spawned.
    pub async fn cancelled(&self) {
        self.run.signal.reached(Phase::Cancelled).await;
    }

    /// Whether the run is cancelled, for work that cannot wait.
    pub fn is_cancelled(&self) -> bool {
        self.run.signal.phase() == Phase::Cancelled
    }
}

impl<T> Clone for Context<T> {
    fn clone(&self) -> Self {
        Self { run: Arc::clone(&self.run), ..*self }
    }
}

impl<T> fmt::Debug for Context<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("task", &self.task())
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
