//! Attempts, the waits between them, and timeouts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use orch_dag::{Control, Failure, Hooks, Outcome, Plan, Retry, Runner, Status, TaskError};

use crate::support::{Log, changed, endless, failing, seconds, statuses};

fn retry(times: u32) -> Retry {
    Retry::times(times).initial(seconds(1)).cap(seconds(4))
}

#[tokio::test(start_paused = true)]
async fn a_task_is_tried_once_and_then_as_often_as_its_retry_says() {
    let mut plan = Plan::new("p");
    plan.task("a", failing).retry(retry(3));
    let report = Runner::new().run(plan).await.unwrap();
    assert_eq!(report.tasks[0].attempts, 4);
    assert_eq!(report.tasks[0].status, Status::Failed(Failure::Error { chain: vec!["broken".to_owned()] }));
}

#[tokio::test(start_paused = true)]
async fn each_attempt_knows_its_number_and_the_last_one_counts() {
    let log = Log::default();
    let mut plan = Plan::new("p");
    let noted = log.clone();
    plan.task("a", move |cx| {
        noted.note(cx.attempt().to_string());
        async move { if cx.attempt() < 3 { failing(cx).await } else { changed(cx).await } }
    })
    .retry(retry(9));
    let report = Runner::new().run(plan).await.unwrap();
    assert_eq!(log.text(), "1\n2\n3");
    assert_eq!((report.tasks[0].attempts, &report.tasks[0].status), (3, &Status::Changed));
}

#[tokio::test(start_paused = true)]
async fn an_error_marked_as_final_is_not_retried() {
    let mut plan: Plan = Plan::new("p");
    plan.task("a", |_| async { Err(TaskError::new("no use").no_retry()) }).retry(retry(3));
    assert_eq!(Runner::new().run(plan).await.unwrap().tasks[0].attempts, 1);
}

#[derive(Clone, Default)]
struct Waits(Arc<Mutex<Vec<Duration>>>);

impl Hooks for Waits {
    fn on_retry(&self, _: &str, _: u32, _: &Failure, wait: Duration) {
        self.0.lock().unwrap().push(wait);
    }
}

async fn waits(seed: u64) -> Vec<Duration> {
    let waits = Waits::default();
    let mut plan = Plan::new("p");
    plan.task("a", failing).retry(retry(5));
    let report = Runner::new().seed(seed).hooks(waits.clone()).run(plan).await.unwrap();
    let waits = waits.0.lock().unwrap().clone();
    let total: Duration = waits.iter().sum();
    // The clock of the runtime ticks in milliseconds.
    assert!(report.duration >= total && report.duration < total + Duration::from_millis(6));
    waits
}

#[tokio::test(start_paused = true)]
async fn waits_double_up_to_the_cap_less_some_jitter() {
    let waits = waits(1).await;
    for (wait, most) in waits.iter().zip([1, 2, 4, 4, 4]) {
        assert!(*wait <= seconds(most) && *wait >= seconds(most) / 2, "{wait:?} of {most}s");
    }
    assert_eq!(waits.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn jitter_is_the_same_for_the_same_seed_only() {
    assert_eq!(waits(1).await, waits(1).await);
    assert_ne!(waits(1).await, waits(2).await);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_covers_one_attempt() {
    let mut plan = Plan::new("p");
    plan.task("a", |cx| async move { if cx.attempt() < 3 { endless(cx).await } else { changed(cx).await } })
        .timeout(seconds(5))
        .retry(Retry::times(2).initial(Duration::ZERO));
    let report = Runner::new().run(plan).await.unwrap();
    assert_eq!(report.tasks[0].status, Status::Changed);
    assert_eq!(report.duration.as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_failed_by_timeout() {
    let mut plan = Plan::new("p");
    plan.task("engine-noticed", endless).timeout(seconds(5)).on_error(orch_dag::OnError::Continue);
    plan.task("task-noticed", |_| async {
        tokio::time::sleep(seconds(7)).await;
        Err(TaskError::new("no answer").timed_out())
    });
    let report = Runner::new().run(plan).await.unwrap();
    expect![[r"
        engine-noticed: failed: timed out after 5s
        task-noticed: failed: timed out after 7s: no answer
    "]]
    .assert_eq(&statuses(&report));
}

#[tokio::test(start_paused = true)]
async fn a_wait_between_attempts_ends_at_once_when_the_run_is_stopped() {
    for end in [Control::stop, Control::cancel] {
        let control = Control::new();
        let mut plan = Plan::new("p");
        plan.task("a", failing).retry(Retry::times(1).initial(seconds(100)).cap(seconds(100)));
        let handle = control.clone();
        plan.task("b", move |_| {
            let handle = handle.clone();
            async move {
                tokio::time::sleep(seconds(1)).await;
                end(&handle);
                Ok(Outcome::changed())
            }
        });
        let report = Runner::new().control(control).run(plan).await.unwrap();
        assert_eq!(report.duration, seconds(1));
        assert_eq!(report.tasks[0].attempts, 1);
        assert_eq!(report.tasks[0].status.to_string(), "failed: broken");
    }
}

#[tokio::test(start_paused = true)]
async fn the_text_of_every_source_is_in_the_failure() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot read `config`")]
    struct Outer(#[source] std::io::Error);

    let mut plan: Plan = Plan::new("p");
    plan.task("a", |_| async { Err(Outer(std::io::ErrorKind::NotFound.into()))? });
    let report = Runner::new().run(plan).await.unwrap();
    expect!["failed: cannot read `config`: entity not found"].assert_eq(&report.tasks[0].status.to_string());
}
