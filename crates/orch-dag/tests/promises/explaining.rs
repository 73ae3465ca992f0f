//! Plans in words.

use expect_test::expect;
use orch_dag::{HostStatus, OnError, Plan, Retry};

use crate::support::{changed, seconds};

#[test]
fn explain_prints_order_dependencies_guards_retry_timeout_and_strategy() {
    let mut plan: Plan = Plan::new("webserver").on_error(OnError::Stop);
    plan.task("restart", changed).after("install").only_if_changed().when("it is night", |_| true);
    plan.task("install", changed).retry(Retry::times(3)).timeout(seconds(30)).on_error(OnError::Continue);
    plan.task("cleanup", changed).after("install").after("restart").only_if_failed();
    plan.task("repair", changed).after("install").only_if_any_host(HostStatus::Failed).even_if_failed();
    expect![[r"
        plan `webserver`: 4 tasks, on error stop
          1. install
             retry 3 times, waiting 500ms and doubling up to 30s
             timeout 30s
             on error continue
          2. restart
             after install
             only if some dependency changed
             only if it is night
          3. cleanup
             after install, restart
             only if some dependency failed
          4. repair
             after install
             only if any host failed
             even if a dependency failed
    "]]
    .assert_eq(&plan.explain());
}

#[test]
fn explain_works_for_plans_that_cannot_be_run() {
    let mut other: Plan = Plan::new("other");
    let foreign = other.task("x", changed).id();
    let mut plan: Plan = Plan::new("p");
    plan.task("a", changed).after("b");
    plan.task("b", changed).after("a");
    plan.task("c", changed).after("ghost").after(foreign);
    expect![[r"
        plan `p`: 3 tasks, on error stop all
          1. c
             after ghost, (a task of another plan)
          2. a
             after b
          3. b
             after a
    "]]
    .assert_eq(&plan.explain());
}
