//! What can be wrong with a plan, found before anything runs.

use std::sync::Arc;

use thiserror::Error;

use crate::graph;
use crate::plan::Plan;

/// A plan that cannot be run, with all that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("plan `{plan}` cannot be run: {}", list(.problems))]
pub struct PlanError {
    /// The plan's name.
    pub plan: String,
    /// All that is wrong with it, in the plan's order.
    pub problems: Vec<Problem>,
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// One thing that is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// Several tasks have one name.
    #[error("task `{task}` is defined more than once")]
    DuplicateName {
        /// That name.
        task: Arc<str>,
    },
    /// A task waits for a name that no task has.
    #[error("task `{task}` waits for `{dependency}`, which is not in the plan")]
    UnknownDependency {
        /// The task that waits.
        task: Arc<str>,
        /// What it waits for.
        dependency: Arc<str>,
    },
    /// A task waits for a [`TaskId`](crate::TaskId) of another plan.
    #[error("task `{task}` waits for a task of another plan")]
    ForeignDependency {
        /// The task that waits.
        task: Arc<str>,
    },
    /// Tasks wait for each other.
    #[error("tasks wait for each other: `{}`", path.join(" -> "))]
    Cycle {
        /// Each waits for the next; the first is also the last.
        path: Vec<Arc<str>>,
    },
    /// The journal to resume from tells of a task that the plan does not have.
    #[error("the journal tells of task `{task}`, which is not in the plan")]
    UnknownEntry {
        /// The name in the journal.
        task: Arc<str>,
    },
}

impl<T> Plan<T> {
    /// Says all that is wrong with the plan. [`Runner::run`](crate::Runner::run) does this as well.
    pub fn validate(&self) -> Result<(), PlanError> {
        self.verdict(graph::resolve(self).problems)
    }

    pub(crate) fn verdict(&self, problems: Vec<Problem>) -> Result<(), PlanError> {
        if problems.is_empty() { Ok(()) } else { Err(PlanError { plan: self.name.clone(), problems }) }
    }
}
