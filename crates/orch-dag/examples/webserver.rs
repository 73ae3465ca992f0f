//! Several hosts, guards, a retry, and a task that cleans up after a failure.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use orch_dag::HostStatus::{Changed, Failed, Unchanged};
use orch_dag::{Context, Failure, Hooks, OnError, Outcome, Plan, PlanError, Retry, Runner, TaskError};

#[tokio::main]
async fn main() -> Result<(), PlanError> {
    let plan = plan();
    println!("{}", plan.explain());
    let report = Runner::new().limit(4).hooks(Progress).run(plan).await?;
    println!("\n{report}");
    Ok(())
}

fn plan() -> Plan {
    let mut plan = Plan::new("webserver").on_error(OnError::Continue);
    let user = plan.task("create-user", |_| async { Ok(Outcome::unchanged()) }).id();
    let install =
        plan.task("install", install).after(user).retry(quick()).timeout(Duration::from_secs(5)).id();
    let names = plan.task("configure-names", configure_names).retry(quick()).id();

    plan.task("restart", |_| async { Ok(Outcome::changed()) }).after(install).only_if_changed();
    plan.task("replace-broken", |_| async { Ok(Outcome::changed()) }).after(install).only_if_any_host(Failed);
    plan.task("announce", |_| async { Ok(Outcome::changed()) }).after_all([install, names]);
    plan.task("restore-names", |cx| async move {
        println!(
            "  restoring, because: {:?}",
            cx.result("configure-names").map(|task| task.status.to_string())
        );
        Ok(Outcome::changed())
    })
    .after(names)
    .only_if_failed();
    plan
}

fn quick() -> Retry {
    Retry::times(2).initial(Duration::from_millis(20)).cap(Duration::from_millis(100))
}

/// Fails as a whole the first time; the second time one host is left behind.
async fn install(cx: Context) -> Result<Outcome, TaskError> {
    if cx.attempt() == 1 {
        return Err(TaskError::new("the mirror does not answer"));
    }
    Ok(Outcome::changed().host("alpha", Changed).host("beta", Unchanged).host("gamma", Failed))
}

async fn configure_names(_: Context) -> Result<Outcome, TaskError> {
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    Err(TaskError::new(refused).no_retry().host("delta", Failed))
}

struct Progress;

impl Hooks for Progress {
    fn before_task(&self, task: &str) {
        println!("  {task} …");
    }

    fn on_retry(&self, task: &str, attempt: u32, failure: &Failure, wait: Duration) {
        println!("  {task}: attempt {attempt} failed: {failure}; again in {wait:.0?}");
    }
}
