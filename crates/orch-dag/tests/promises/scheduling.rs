//! When tasks start.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use expect_test::expect;
use orch_dag::{Outcome, Plan, Runner, TaskError};
use tokio::sync::Barrier;

use crate::support::{Log, Returned, seconds};

#[tokio::test(start_paused = true)]
async fn a_task_starts_when_its_own_dependencies_ended_and_not_when_a_level_ended() {
    let log = Log::default();
    let mut plan = Plan::new("p");
    let quick = plan.task("quick", log.task(seconds(1))).id();
    plan.task("slow", log.task(seconds(10)));
    plan.task("after-quick", log.task(seconds(1))).after(quick);
    Runner::new().run(plan).await.unwrap();
    expect![[r"
        +quick
        +slow
        -quick
        +after-quick
        -after-quick
        -slow"]]
    .assert_eq(&log.text());
}

#[tokio::test(start_paused = true)]
async fn ready_tasks_start_in_the_order_of_the_plan() {
    let log = Log::default();
    let mut plan = Plan::new("p");
    plan.task("d", log.task(seconds(1))).after("a");
    for name in ["a", "b", "c"] {
        plan.task(name, log.task(seconds(1)));
    }
    Runner::new().limit(1).run(plan).await.unwrap();
    expect![[r"
        +a
        -a
        +d
        -d
        +b
        -b
        +c
        -c"]]
    .assert_eq(&log.text());
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_reached_and_never_exceeded() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut plan = Plan::new("p");
    for index in 0..20 {
        let (running, most) = (running.clone(), most.clone());
        plan.task(format!("t{index}"), move |_| {
            let (running, most) = (running.clone(), most.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(seconds(1)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(Outcome::changed())
            }
        });
    }
    let report = Runner::new().limit(3).run(plan).await.unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(report.duration, seconds(7));
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_every_ready_task_runs_at_once() {
    let together = Arc::new(Barrier::new(500));
    let mut plan = Plan::new("p");
    for index in 0..500 {
        let together = together.clone();
        plan.task(format!("t{index}"), move |_| {
            let together = together.clone();
            async move {
                together.wait().await;
                Ok(Outcome::changed())
            }
        });
    }
    assert!(Runner::new().run(plan).await.unwrap().is_success());
}

/// Blocks its thread until four have come, or long enough to be sure that they will not.
fn meet(meeting: &(Mutex<usize>, Condvar)) -> Returned {
    let (present, arrival) = meeting;
    let mut present = present.lock().unwrap();
    *present += 1;
    arrival.notify_all();
    let (_present, waited) =
        arrival.wait_timeout_while(present, seconds(20), |present| *present < 4).unwrap();
    if waited.timed_out() { Err(TaskError::new("alone")) } else { Ok(Outcome::changed()) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_that_block_their_thread_still_run_side_by_side() {
    let meeting = Arc::new((Mutex::new(0), Condvar::new()));
    let mut plan = Plan::new("p");
    for index in 0..4 {
        let meeting = meeting.clone();
        plan.task(format!("t{index}"), move |_| {
            let meeting = meeting.clone();
            async move { meet(&meeting) }
        });
    }
    let run = tokio::spawn(Runner::new().run(plan));
    assert!(run.await.unwrap().unwrap().is_success());
}

#[tokio::test(start_paused = true)]
async fn later_tasks_read_what_earlier_ones_returned() {
    let mut plan = Plan::new("p");
    let one = plan.task("one", |_| async { Ok(Outcome::changed().with(1)) }).id();
    plan.task("two", |cx| async move {
        let one = cx.value("one").ok_or_else(|| TaskError::new("nothing there"))?;
        assert!(cx.result("one").is_some_and(orch_dag::TaskReport::is_changed));
        assert!(cx.result("two").is_none());
        assert!(cx.result("nobody").is_none());
        Ok(Outcome::unchanged().with(one + 1))
    })
    .after(one);
    let report = Runner::new().run(plan).await.unwrap();
    assert_eq!(report.task("two").unwrap().value, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_plan_without_tasks_ends_at_once() {
    let report = Runner::new().run(Plan::<()>::new("p")).await.unwrap();
    assert_eq!(report.summary(), "0 tasks: 0 changed, 0 unchanged, 0 skipped · 0.0s");
}

#[tokio::test(start_paused = true)]
async fn a_dependency_named_twice_counts_once() {
    let log = Log::default();
    let mut plan = Plan::new("p");
    let one = plan.task("one", log.task(seconds(1))).id();
    plan.task("two", log.task(seconds(1))).after(one).after("one");
    assert!(Runner::new().run(plan).await.unwrap().is_success());
}
