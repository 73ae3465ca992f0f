//! Whether a task runs: the order in which its dependencies, `only_if_changed` and its guards have their say.
//!
//! Pure: what it reads has ended, and what it answers is a reason or none.

use crate::guard::Guard;
use crate::results::Dependencies;
use crate::status::SkipReason;
use crate::task::Task;
use crate::task_report::TaskReport;

/// Why the task is skipped; none if it runs. All dependencies have ended.
pub(crate) fn decide<T>(task: &Task<T>, dependencies: &Dependencies<'_, T>) -> Option<SkipReason> {
    failed_dependency(task, dependencies)
        .or_else(|| nothing_changed(task, dependencies))
        .or_else(|| guarded(task, dependencies))
}

/// The first rule alone: a failure behind a dependency, unless a guard of the task looks at failures.
pub(crate) fn failed_dependency<T>(task: &Task<T>, dependencies: &Dependencies<'_, T>) -> Option<SkipReason> {
    if task.guards.iter().any(Guard::looks_at_failures) {
        return None;
    }
    let culprit = dependencies.iter().find_map(|dependency| dependency.culprit())?;
    Some(SkipReason::DependencyFailed { task: culprit.clone() })
}

fn nothing_changed<T>(task: &Task<T>, dependencies: &Dependencies<'_, T>) -> Option<SkipReason> {
    let unmet = task.only_if_changed && !dependencies.iter().any(TaskReport::is_changed);
    unmet.then_some(SkipReason::NothingChanged)
}

fn guarded<T>(task: &Task<T>, dependencies: &Dependencies<'_, T>) -> Option<SkipReason> {
    let unmet = task.guards.iter().find(|guard| !guard.holds(dependencies))?;
    Some(SkipReason::Guard { label: unmet.to_string() })
}
