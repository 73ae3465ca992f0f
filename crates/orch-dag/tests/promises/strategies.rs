//! What a failure means for the rest of the run.

use expect_test::expect;
use orch_dag::{Failure, OnError, Plan, Retry, Runner, Status};

use crate::support::{Log, Returned, changed, check, endless, failing, seconds};

async fn fails_after_a_second(cx: orch_dag::Context) -> Returned {
    tokio::time::sleep(seconds(1)).await;
    failing(cx).await
}

/// A task that fails while another runs, one after each, and one that would be last.
fn plan(on_error: OnError, log: &Log) -> Plan {
    let mut plan = Plan::new("p").on_error(on_error);
    plan.task("fails", fails_after_a_second);
    plan.task("runs", log.task(seconds(5)));
    plan.task("after-fails", changed).after("fails");
    plan.task("after-runs", changed).after("runs");
    plan
}

#[tokio::test(start_paused = true)]
async fn stop_starts_nothing_new_and_lets_running_tasks_end() {
    check(
        plan(OnError::Stop, &Log::default()),
        expect![[r"
            fails: failed: broken
            runs: changed
            after-fails: skipped: dependency `fails` failed
            after-runs: skipped: the run stopped when `fails` failed
        "]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn stop_all_is_the_default_and_cancels_running_tasks_at_once() {
    let log = Log::default();
    let report = Runner::new().run(plan(OnError::default(), &log)).await.unwrap();
    expect![[r"
        fails: failed: broken
        runs: failed: cancelled
        after-fails: skipped: dependency `fails` failed
        after-runs: skipped: the run stopped when `fails` failed
    "]]
    .assert_eq(&crate::support::statuses(&report));
    assert_eq!(report.duration, seconds(1));
    assert_eq!(log.text(), "+runs");
}

#[tokio::test(start_paused = true)]
async fn continue_skips_dependents_and_goes_on_with_the_rest() {
    check(
        plan(OnError::Continue, &Log::default()),
        expect![[r"
            fails: failed: broken
            runs: changed
            after-fails: skipped: dependency `fails` failed
            after-runs: changed
        "]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_strategy_of_the_failing_task_overrides_the_plans() {
    let mut plan = Plan::new("p").on_error(OnError::StopAll);
    plan.task("harmless", failing).on_error(OnError::Continue);
    plan.task("goes-on", changed);
    plan.task("grave", failing).on_error(OnError::Stop).after("goes-on");
    plan.task("never", changed).after("goes-on");
    let report = Runner::new().limit(1).run(plan).await.unwrap();
    expect![[r"
        harmless: failed: broken
        goes-on: changed
        grave: failed: broken
        never: skipped: the run stopped when `grave` failed
    "]]
    .assert_eq(&crate::support::statuses(&report));
}

#[tokio::test(start_paused = true)]
async fn a_strategy_applies_only_when_no_retry_is_left() {
    for on_error in [OnError::Stop, OnError::StopAll, OnError::Continue] {
        let mut plan = Plan::new("p").on_error(on_error);
        plan.task("second-time-lucky", |cx| async move {
            if cx.attempt() == 1 { failing(cx).await } else { changed(cx).await }
        })
        .retry(Retry::times(1));
        plan.task("beside", Log::default().task(seconds(60)));
        plan.task("after", changed).after("second-time-lucky");
        assert!(Runner::new().run(plan).await.unwrap().is_success(), "{on_error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_task_is_a_failed_task() {
    let mut plan: Plan = Plan::new("p").on_error(OnError::Continue);
    plan.task("polled", |_| async { panic!("in the future") });
    plan.task("called", |cx| {
        assert_ne!(cx.attempt(), 1, "in the call");
        changed(cx)
    });
    plan.task("beside", changed);
    plan.task("after", changed).after("polled");
    let report = Runner::new().run(plan).await.unwrap();
    let failure = |name: &str| report.task(name).unwrap().status.clone();
    assert_eq!(failure("polled"), Status::Failed(Failure::Panicked { message: "in the future".to_owned() }));
    assert!(matches!(failure("called"), Status::Failed(Failure::Panicked { .. })));
    assert_eq!(failure("beside"), Status::Changed);
    assert!(failure("after").is_skipped());
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("while being dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_while_being_cancelled_does_not_take_the_engine_with_it() {
    let mut plan = Plan::new("p");
    plan.task("clings", |cx| async move {
        let _panics = PanicsOnDrop;
        endless(cx).await
    });
    plan.task("fails", fails_after_a_second);
    check(
        plan,
        expect![[r"
            clings: failed: cancelled
            fails: failed: broken
        "]],
    )
    .await;
}

#[test]
fn a_runtime_without_a_clock_fails_the_tasks_that_need_one_and_not_the_engine() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut plan = Plan::new("p").on_error(OnError::Continue);
    plan.task("timed", changed).timeout(seconds(1));
    plan.task("after", changed).after("timed");
    plan.task("beside", changed);
    let report = runtime.block_on(Runner::new().run(plan)).unwrap();
    assert!(matches!(report.tasks[0].status, Status::Failed(Failure::Panicked { .. })));
    assert!(report.tasks[1].status.is_skipped());
    assert_eq!(report.tasks[2].status, Status::Changed);
}
