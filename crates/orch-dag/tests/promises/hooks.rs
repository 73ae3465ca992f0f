//! What hooks are told, and in which order.

use std::time::Duration;

use expect_test::expect;
use orch_dag::{Failure, Hooks, OnError, Plan, Report, Retry, Runner, SkipReason, TaskReport};

use crate::support::{Log, changed, failing};

impl Hooks for Log {
    fn before_plan(&self, plan: &Plan) {
        self.note(format!("before plan {} of {}", plan.name(), plan.len()));
    }

    fn after_plan(&self, report: &Report) {
        self.note(format!("after plan: {}", report.summary()));
    }

    fn before_task(&self, task: &str) {
        self.note(format!("before {task}"));
    }

    fn after_task(&self, report: &TaskReport) {
        self.note(format!("after {report}"));
    }

    fn on_retry(&self, task: &str, attempt: u32, failure: &Failure, _: Duration) {
        self.note(format!("retry {task}: {attempt} {failure}"));
    }

    fn on_skip(&self, task: &str, reason: &SkipReason) {
        self.note(format!("skip {task}: {reason}"));
    }
}

fn plan() -> Plan {
    let mut plan = Plan::new("p");
    plan.task("a", changed);
    plan.task("b", failing).after("a").retry(Retry::times(1).initial(Duration::ZERO)).on_error(OnError::Stop);
    plan.task("c", changed).after("b");
    plan.task("d", changed).after("a").when("never", |_| false);
    plan
}

#[tokio::test(start_paused = true)]
async fn hooks_see_the_whole_run_in_order() {
    let log = Log::default();
    Runner::new().limit(1).hooks(log.clone()).run(plan()).await.unwrap();
    expect![[r"
        before plan p of 4
        before a
        after a: changed
        before b
        retry b: 1 broken
        after b: failed: broken (2 attempts)
        skip c: dependency `b` failed
        skip d: the run stopped when `b` failed
        after plan: 4 tasks: 1 changed, 0 unchanged, 2 skipped, 1 failed · 0.0s"]]
    .assert_eq(&log.text());
}

struct Panics;

impl Hooks for Panics {
    fn before_task(&self, _: &str) {
        panic!("a hook");
    }

    fn after_plan(&self, _: &Report) {
        panic!("another hook");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_is_passed_over_and_the_next_one_is_called() {
    let log = Log::default();
    let mut plan = Plan::new("p");
    plan.task("a", changed);
    let runner = Runner::new().hooks(Panics).hooks(std::sync::Arc::new(log.clone()));
    assert!(runner.run(plan).await.unwrap().is_success());
    assert!(log.text().contains("before a"));
}
