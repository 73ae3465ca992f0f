//! The report as a value: what is in it, and how it is stored.

use expect_test::expect;
use orch_dag::{HostStatus, OnError, Outcome, Plan, Report, Runner, TaskError};

use crate::support::seconds;

async fn report() -> Report<u32> {
    let mut plan = Plan::new("p").on_error(OnError::Continue);
    plan.task("a", |_| async {
        tokio::time::sleep(seconds(2)).await;
        Ok(Outcome::changed().with(7).host("one", HostStatus::Changed))
    });
    plan.task("b", |_| async { Err(TaskError::new("broken").host("one", HostStatus::Failed)) }).after("a");
    plan.task("c", |_| async { Ok(Outcome::unchanged().with(1)) }).after("b");
    Runner::new().run(plan).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_report_has_every_task_with_times_attempts_hosts_and_values() {
    let json = serde_json::to_string_pretty(&report().await).unwrap();
    expect![[r#"
        {
          "plan": "p",
          "tasks": [
            {
              "name": "a",
              "status": "changed",
              "attempts": 1,
              "started": 0.0,
              "duration": 2.0,
              "hosts": {
                "one": "changed"
              },
              "value": 7
            },
            {
              "name": "b",
              "status": {
                "failed": {
                  "error": {
                    "chain": [
                      "broken"
                    ]
                  }
                }
              },
              "attempts": 1,
              "started": 2.0,
              "duration": 0.0,
              "hosts": {
                "one": "failed"
              }
            },
            {
              "name": "c",
              "status": {
                "skipped": {
                  "dependency_failed": {
                    "task": "b"
                  }
                }
              },
              "attempts": 0,
              "duration": 0.0
            }
          ],
          "duration": 2.0
        }"#]]
    .assert_eq(&json);
}

#[tokio::test(start_paused = true)]
async fn a_report_read_back_is_the_same() {
    let report = report().await;
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report<u32>>(&json).unwrap(), report);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_stored_as_null_is_still_a_value() {
    let mut plan: Plan = Plan::new("p");
    plan.task("a", crate::support::changed);
    let report = Runner::new().run(plan).await.unwrap();
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap().tasks[0].value, Some(()));
}
