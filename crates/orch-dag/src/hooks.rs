//! Places where a program can look on: to draw progress, to log, to count.

use std::sync::Arc;
use std::time::Duration;

use crate::plan::Plan;
use crate::report::Report;
use crate::status::{Failure, SkipReason};
use crate::task_report::TaskReport;

/// Called by the engine as it goes. Every method does nothing unless written.
///
/// They are called by the workers, in between, so they should be quick; a hook that panics is passed over. They
/// cannot alter the run, except through a [`Control`](crate::Control) they hold. Tasks that had ended in an earlier run call none.
pub trait Hooks<T = ()>: Send + Sync {
    /// The plan is valid; nothing has started.
    fn before_plan(&self, plan: &Plan<T>) {
        let _ = plan;
    }

    /// Everything has ended.
    fn after_plan(&self, report: &Report<T>) {
        let _ = report;
    }

    /// The task is about to be tried for the first time; its start is journalled.
    fn before_task(&self, task: &str) {
        let _ = task;
    }

    /// The task was run and has ended, with success or not; its end is journalled, unless the run cut it short.
    fn after_task(&self, report: &TaskReport<T>) {
        let _ = report;
    }

    /// The given attempt failed, and another will follow after `wait`.
    fn on_retry(&self, task: &str, attempt: u32, failure: &Failure, wait: Duration) {
        let _ = (task, attempt, failure, wait);
    }

    /// The task will not be run.
    fn on_skip(&self, task: &str, reason: &SkipReason) {
        let _ = (task, reason);
    }
}

/// So that a program can keep hold of its hooks.
impl<T, H: Hooks<T> + ?Sized> Hooks<T> for Arc<H> {
    fn before_plan(&self, plan: &Plan<T>) {
        (**self).before_plan(plan);
    }

    fn after_plan(&self, report: &Report<T>) {
        (**self).after_plan(report);
    }

    fn before_task(&self, task: &str) {
        (**self).before_task(task);
    }

    fn after_task(&self, report: &TaskReport<T>) {
        (**self).after_task(report);
    }

    fn on_retry(&self, task: &str, attempt: u32, failure: &Failure, wait: Duration) {
        (**self).on_retry(task, attempt, failure, wait);
    }

    fn on_skip(&self, task: &str, reason: &SkipReason) {
        (**self).on_skip(task, reason);
    }
}
