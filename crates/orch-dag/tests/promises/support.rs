//! Tasks and readings that many promises share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::Expect;
use orch_dag::{Context, Outcome, Plan, Report, Runner, TaskError, TaskReport};

pub(crate) type Returned = Result<Outcome, TaskError>;

pub(crate) async fn changed(_: Context) -> Returned {
    Ok(Outcome::changed())
}

pub(crate) async fn unchanged(_: Context) -> Returned {
    Ok(Outcome::unchanged())
}

pub(crate) async fn failing(_: Context) -> Returned {
    Err(TaskError::new("broken"))
}

/// Never ends by itself.
pub(crate) async fn endless(_: Context) -> Returned {
    std::future::pending().await
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Every task and how it ended.
pub(crate) fn statuses<T>(report: &Report<T>) -> String {
    let line = |task: &Arc<TaskReport<T>>| format!("{}: {}\n", task.name, task.status);
    report.tasks.iter().map(line).collect()
}

/// Runs the plan as it is and compares how every task ended.
pub(crate) async fn check(plan: Plan, expected: Expect) {
    let report = Runner::new().run(plan).await.unwrap();
    expected.assert_eq(&statuses(&report));
}

/// What happened, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }

    /// A task that notes its name when it starts and again when it ends, `duration` later.
    pub(crate) fn task(
        &self,
        duration: Duration,
    ) -> impl Fn(Context) -> std::pin::Pin<Box<dyn Future<Output = Returned> + Send>> + Send + Sync + use<>
    {
        let log = self.clone();
        move |cx| {
            let log = log.clone();
            Box::pin(async move {
                log.note(format!("+{}", cx.task()));
                tokio::time::sleep(duration).await;
                log.note(format!("-{}", cx.task()));
                Ok(Outcome::changed())
            })
        }
    }
}
