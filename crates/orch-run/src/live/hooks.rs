//! Several listeners to one run.

use std::sync::Arc;
use std::time::Duration;

use orch_dag::{Failure, Hooks, Plan, Report, SkipReason, TaskReport};

use crate::journal::StepValue;

/// Several listeners to one run, told one after the other.
pub struct Several(pub Vec<Arc<dyn Hooks<StepValue>>>);

impl Hooks<StepValue> for Several {
    fn before_plan(&self, plan: &Plan<StepValue>) {
        self.0.iter().for_each(|hooks| hooks.before_plan(plan));
    }

    fn after_plan(&self, report: &Report<StepValue>) {
        self.0.iter().for_each(|hooks| hooks.after_plan(report));
    }

    fn before_task(&self, task: &str) {
        self.0.iter().for_each(|hooks| hooks.before_task(task));
    }

    fn after_task(&self, report: &TaskReport<StepValue>) {
        self.0.iter().for_each(|hooks| hooks.after_task(report));
    }

    fn on_retry(&self, task: &str, attempt: u32, failure: &Failure, wait: Duration) {
        self.0.iter().for_each(|hooks| hooks.on_retry(task, attempt, failure, wait));
    }

    fn on_skip(&self, task: &str, reason: &SkipReason) {
        self.0.iter().for_each(|hooks| hooks.on_skip(task, reason));
    }
}
