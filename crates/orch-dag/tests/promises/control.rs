//! Ending a run early, from outside.

use expect_test::expect;
use orch_dag::{Control, OnError, Outcome, Plan, Retry, Runner};

use crate::support::{Log, changed, endless, failing, seconds, statuses};

/// `acts` uses the handle after a second; `runs` takes five; the rest waits for one of them.
fn plan(control: &Control, act: fn(&Control), log: &Log) -> Plan {
    let mut plan = Plan::new("p");
    let control = control.clone();
    plan.task("acts", move |_| {
        let control = control.clone();
        async move {
            tokio::time::sleep(seconds(1)).await;
            act(&control);
            Ok(Outcome::changed())
        }
    });
    plan.task("runs", log.task(seconds(5)));
    plan.task("after-acts", changed).after("acts");
    plan.task("after-runs", changed).after("runs");
    plan
}

#[tokio::test(start_paused = true)]
async fn stop_lets_running_tasks_end_and_starts_nothing_new() {
    let control = Control::new();
    let plan = plan(&control, Control::stop, &Log::default());
    let report = Runner::new().control(control).run(plan).await.unwrap();
    expect![[r"
        acts: changed
        runs: changed
        after-acts: skipped: the run was stopped
        after-runs: skipped: the run was stopped
    "]]
    .assert_eq(&statuses(&report));
    assert!(!report.is_success());
}

#[tokio::test(start_paused = true)]
async fn cancel_drops_running_tasks_at_once() {
    let (control, log) = (Control::new(), Log::default());
    let plan = plan(&control, Control::cancel, &log);
    let report = Runner::new().control(control).run(plan).await.unwrap();
    expect![[r"
        acts: changed
        runs: failed: cancelled
        after-acts: skipped: the run was cancelled
        after-runs: skipped: the run was cancelled
    "]]
    .assert_eq(&statuses(&report));
    assert_eq!(report.duration, seconds(1));
    assert_eq!(log.text(), "+runs");
}

#[tokio::test(start_paused = true)]
async fn cancel_after_stop_cancels_and_stop_after_cancel_changes_nothing() {
    let control = Control::new();
    let mut plan = Plan::new("p");
    plan.task("a", endless);
    let handle = control.clone();
    tokio::spawn(async move {
        tokio::time::sleep(seconds(1)).await;
        handle.stop();
        tokio::time::sleep(seconds(1)).await;
        handle.cancel();
        handle.stop();
    });
    let report = Runner::new().control(control).run(plan).await.unwrap();
    assert_eq!(report.tasks[0].status.to_string(), "failed: cancelled");
}

#[tokio::test(start_paused = true)]
async fn after_stop_an_attempt_that_fails_is_not_retried() {
    let control = Control::new();
    let mut plan: Plan = Plan::new("p");
    let handle = control.clone();
    plan.task("a", move |cx| {
        handle.stop();
        failing(cx)
    })
    .retry(Retry::times(5));
    let report = Runner::new().control(control).run(plan).await.unwrap();
    assert_eq!((report.tasks[0].attempts, report.duration), (1, seconds(0)));
}

#[tokio::test(start_paused = true)]
async fn a_handle_used_before_the_run_keeps_everything_from_starting() {
    let (control, log) = (Control::new(), Log::default());
    control.stop();
    let mut plan = Plan::new("p");
    plan.task("a", log.task(seconds(1)));
    let report = Runner::new().control(control).run(plan).await.unwrap();
    assert_eq!(statuses(&report), "a: skipped: the run was stopped\n");
    assert_eq!(log.text(), "");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stops_by_itself_leaves_the_handle_to_other_runs() {
    let control = Control::new();
    let mut first = Plan::new("first").on_error(OnError::StopAll);
    first.task("a", failing);
    let mut second = Plan::new("second");
    second.task("a", changed);
    assert!(!Runner::new().control(control.clone()).run(first).await.unwrap().is_success());
    assert!(Runner::new().control(control).run(second).await.unwrap().is_success());
}

#[tokio::test(start_paused = true)]
async fn within_the_grace_a_cancelled_task_can_clean_up() {
    let (control, log) = (Control::new(), Log::default());
    let mut plan: Plan = Plan::new("p");
    let noted = log.clone();
    plan.task("cleans", move |cx| {
        let log = noted.clone();
        async move {
            cx.cancelled().await;
            assert!(cx.is_cancelled());
            tokio::time::sleep(seconds(2)).await;
            log.note("clean");
            failing(cx).await
        }
    });
    plan.task("still-succeeds", Log::default().task(seconds(3)));
    plan.task("takes-too-long", endless);
    let handle = control.clone();
    tokio::spawn(async move {
        tokio::time::sleep(seconds(1)).await;
        handle.cancel();
    });
    let report = Runner::new().control(control).grace(seconds(10)).run(plan).await.unwrap();
    expect![[r"
        cleans: failed: cancelled
        still-succeeds: changed
        takes-too-long: failed: cancelled
    "]]
    .assert_eq(&statuses(&report));
    assert_eq!((log.text().as_str(), report.duration), ("clean", seconds(11)));
}

#[tokio::test(start_paused = true)]
async fn what_a_task_spawned_learns_of_the_cancellation() {
    let control = Control::new();
    let mut plan: Plan = Plan::new("p");
    let (told, mut telling) = tokio::sync::mpsc::unbounded_channel();
    plan.task("spawns", move |cx| {
        let (child, told) = (cx.clone(), told.clone());
        tokio::spawn(async move {
            child.cancelled().await;
            let _ = told.send("cancelled");
        });
        endless(cx)
    });
    plan.task("acts", {
        let control = control.clone();
        move |cx| {
            control.cancel();
            changed(cx)
        }
    });
    Runner::new().control(control).run(plan).await.unwrap();
    assert_eq!(telling.recv().await, Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_cancels_it() {
    let (gone, watch) = tokio::sync::oneshot::channel::<()>();
    let gone = std::sync::Mutex::new(Some(gone));
    let mut plan: Plan = Plan::new("p");
    plan.task("a", move |cx| {
        let held = gone.lock().unwrap().take();
        async move {
            let _held = held;
            endless(cx).await
        }
    });
    let run = Runner::new().run(plan);
    assert!(tokio::time::timeout(seconds(1), run).await.is_err());
    assert!(watch.await.is_err(), "the task's future was dropped, and the sender with it");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_cancel_is_not_woken_by_a_stop() {
    let control = Control::new();
    let waits = || tokio::time::timeout(seconds(1), control.cancelled());
    assert!(waits().await.is_err(), "nobody did anything");
    control.stop();
    assert!(waits().await.is_err(), "a stop is no cancel");
    let other = control.clone();
    let (woken, ()) = tokio::join!(waits(), async move { other.cancel() });
    assert!(woken.is_ok(), "a cancel by any clone is heard");
    assert!(waits().await.is_ok(), "and also by those who come later");
}

#[tokio::test(start_paused = true)]
async fn pause_lets_running_tasks_end_and_starts_nothing_new_until_resumed() {
    let (control, log) = (Control::new(), Log::default());
    let plan = plan(&control, Control::pause, &log);
    let handle = control.clone();
    tokio::spawn(async move {
        tokio::time::sleep(seconds(30)).await;
        assert!(handle.is_paused());
        handle.resume();
    });
    let report = Runner::new().control(control).run(plan).await.unwrap();
    expect![[r"
        acts: changed
        runs: changed
        after-acts: changed
        after-runs: changed
    "]]
    .assert_eq(&statuses(&report));
    assert_eq!(report.duration, seconds(30), "what was ready waited for the word to go on");
    assert_eq!(log.text(), "+runs\n-runs");
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_can_be_stopped() {
    let control = Control::new();
    let plan = plan(&control, Control::pause, &Log::default());
    let handle = control.clone();
    tokio::spawn(async move {
        tokio::time::sleep(seconds(30)).await;
        handle.stop();
    });
    let report = Runner::new().control(control).run(plan).await.unwrap();
    assert_eq!(report.duration, seconds(30));
    assert!(statuses(&report).contains("after-runs: skipped: the run was stopped"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_begins_paused_begins_nothing() {
    let control = Control::new();
    control.pause();
    let mut plan = Plan::new("p");
    plan.task("a", changed);
    let handle = control.clone();
    tokio::spawn(async move {
        tokio::time::sleep(seconds(3)).await;
        handle.resume();
    });
    let report = Runner::new().control(control).run(plan).await.unwrap();
    assert_eq!((report.duration, report.is_success()), (seconds(3), true));
}
