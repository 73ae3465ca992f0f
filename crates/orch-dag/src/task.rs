//! One unit of work in a plan: what it does, what it waits for, and under which conditions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::BoxFuture;
use crate::context::Context;
use crate::guard::{Guard, Quantifier};
use crate::outcome::{HostStatus, Outcome};
use crate::results::Results;
use crate::retry::Retry;
use crate::strategy::OnError;
use crate::task_error::TaskError;

pub(crate) type Work<T> =
    Box<dyn Fn(Context<T>) -> BoxFuture<'static, Result<Outcome<T>, TaskError>> + Send + Sync>;

/// Names a task of one plan. Small, and of no use in another plan: validation finds it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId {
    pub(crate) plan: u64,
    pub(crate) index: usize,
}

/// What a task waits for: made from a [`TaskId`], or from a name, which need not be in the plan yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dependency {
    /// By its id.
    Id(TaskId),
    /// By its name.
    Name(Arc<str>),
}

impl From<TaskId> for Dependency {
    fn from(id: TaskId) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for Dependency {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

impl From<String> for Dependency {
    fn from(name: String) -> Self {
        Self::Name(name.into())
    }
}

/// One unit of work, as [`Plan::task`](crate::Plan::task) gives it out to be completed.
pub struct Task<T = ()> {
    pub(crate) id: TaskId,
    pub(crate) name: Arc<str>,
    pub(crate) work: Work<T>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) only_if_changed: bool,
    pub(crate) guards: Vec<Guard<T>>,
    pub(crate) retry: Retry,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_error: Option<OnError>,
}

impl<T> Task<T> {
    pub(crate) fn new(id: TaskId, name: Arc<str>, work: Work<T>) -> Self {
        Self {
            id,
            name,
            work,
            dependencies: Vec::new(),
            only_if_changed: false,
            guards: Vec::new(),
            retry: Retry::times(0),
            timeout: None,
            on_error: None,
        }
    }

    /// The name that other tasks of the plan can wait for.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Waits for one more task. It starts when all it waits for have ended, in whatever way.
    pub fn after(&mut self, dependency: impl Into<Dependency>) -> &mut Self {
        self.dependencies.push(dependency.into());
        self
    }

    /// Waits for each of these.
    pub fn after_all<D: Into<Dependency>>(&mut self, dependencies: impl IntoIterator<Item = D>) -> &mut Self {
        self.dependencies.extend(dependencies.into_iter().map(Into::into));
        self
    }

    /// Runs only if some dependency changed something. Judged before every guard.
    pub fn only_if_changed(&mut self) -> &mut Self {
        self.only_if_changed = true;
        self
    }

    /// Runs only if `holds`; `label` is what people read of it. It sees no failed dependency, unless
    /// [`even_if_failed`](Self::even_if_failed) or another guard lets one pass.
    pub fn when(
        &mut self,
        label: impl Into<String>,
        holds: impl Fn(&Results<T>) -> bool + Send + Sync + 'static,
    ) -> &mut Self {
        self.guard(Guard::When { label: label.into(), holds: Box::new(holds) })
    }

    /// Runs only if some dependency failed, or was skipped because of a failure.
    pub fn only_if_failed(&mut self) -> &mut Self {
        self.guard(Guard::SomeFailed)
    }

    /// Runs only if there are dependencies and all of them changed something.
    pub fn only_if_all_changed(&mut self) -> &mut Self {
        self.guard(Guard::AllChanged)
    }

    /// Runs only if the dependencies report a host with this status.
    pub fn only_if_any_host(&mut self, status: HostStatus) -> &mut Self {
        self.guard(Guard::Hosts { quantifier: Quantifier::Any, status })
    }

    /// Runs only if the dependencies report hosts, and all of them with this status.
    pub fn only_if_all_hosts(&mut self, status: HostStatus) -> &mut Self {
        self.guard(Guard::Hosts { quantifier: Quantifier::All, status })
    }

    /// Runs although a dependency failed.
    pub fn even_if_failed(&mut self) -> &mut Self {
        self.guard(Guard::EvenIfFailed)
    }

    fn guard(&mut self, guard: Guard<T>) -> &mut Self {
        self.guards.push(guard);
        self
    }

    /// Tries again when it failed.
    pub fn retry(&mut self, retry: Retry) -> &mut Self {
        self.retry = retry;
        self
    }

    /// The longest that one attempt may take.
    pub fn timeout(&mut self, timeout: Duration) -> &mut Self {
        self.timeout = Some(timeout);
        self
    }

    /// What its failure means for the rest, in place of what the plan says.
    pub fn on_error(&mut self, on_error: OnError) -> &mut Self {
        self.on_error = Some(on_error);
        self
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("name", &self.name).finish_non_exhaustive()
    }
}
