//! Tasks and what they wait for, before anything runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::Context;
use crate::outcome::Outcome;
use crate::strategy::OnError;
use crate::task::{Task, TaskId};
use crate::task_error::TaskError;

/// Tasks and what they wait for. `T` is what every task returns beside whether it changed something.
///
/// Nothing is checked here: [`Runner::run`](crate::Runner::run) and [`Plan::validate`] say all that is wrong at once.
pub struct Plan<T = ()> {
    pub(crate) name: String,
    pub(crate) tasks: Vec<Task<T>>,
    pub(crate) on_error: OnError,
    pub(crate) id: u64,
}

impl<T> Plan<T> {
    /// A plan without tasks.
    pub fn new(name: impl Into<String>) -> Self {
        // Distinguishes plans within the process, so that an id of one is not taken for a task of another.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { name: name.into(), tasks: Vec::new(), on_error: OnError::default(), id }
    }

    /// What the failure of a task means for the rest, where the task says nothing else.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Adds a task. Its order among the others is the order in which ready tasks start.
    ///
    /// `work` is called once per attempt. Its future is dropped when it times out or the run is cancelled.
    pub fn task<F>(
        &mut self,
        name: impl Into<Arc<str>>,
        work: impl Fn(Context<T>) -> F + Send + Sync + 'static,
    ) -> &mut Task<T>
    where
        F: Future<Output = Result<Outcome<T>, TaskError>> + Send + 'static,
    {
        let id = TaskId { plan: self.id, index: self.tasks.len() };
        let work = Box::new(move |context| -> crate::BoxFuture<'static, _> { Box::pin(work(context)) });
        self.tasks.push(Task::new(id, name.into(), work));
        &mut self.tasks[id.index]
    }

    /// The plan's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its tasks, in order.
    pub fn task_names(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().map(|task| &*task.name)
    }

    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

impl<T> fmt::Debug for Plan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("name", &self.name).field("tasks", &self.tasks).finish_non_exhaustive()
    }
}
