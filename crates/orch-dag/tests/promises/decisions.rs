//! Whether a task runs: the order in which failures, `only_if_changed` and guards decide.

use expect_test::expect;
use orch_dag::HostStatus::{Changed, Failed, Skipped, Unchanged};
use orch_dag::{HostStatus, OnError, Outcome, Plan, TaskError};

use crate::support::{Returned, changed, check, failing, unchanged};

fn plan() -> Plan {
    Plan::new("p").on_error(OnError::Continue)
}

#[tokio::test]
async fn a_failed_dependency_skips_its_dependents_transitively() {
    let mut plan = plan();
    let broken = plan.task("broken", failing).id();
    let near = plan.task("near", changed).after(broken).id();
    plan.task("far", changed).after(near);
    plan.task("apart", changed);
    check(
        plan,
        expect![[r"
            broken: failed: broken
            near: skipped: dependency `broken` failed
            far: skipped: dependency `broken` failed
            apart: changed
        "]],
    )
    .await;
}

#[tokio::test]
async fn only_if_changed_asks_for_one_changed_dependency() {
    let mut plan = plan();
    plan.task("changed", changed);
    plan.task("unchanged", unchanged);
    plan.task("one-of-two", changed).after("changed").after("unchanged").only_if_changed();
    plan.task("none", changed).after("unchanged").only_if_changed();
    plan.task("without-dependencies", changed).only_if_changed();
    check(
        plan,
        expect![[r"
            changed: changed
            unchanged: unchanged
            one-of-two: changed
            none: skipped: no dependency changed
            without-dependencies: skipped: no dependency changed
        "]],
    )
    .await;
}

#[tokio::test]
async fn a_skip_by_a_guard_is_no_failure_and_does_not_cascade() {
    let mut plan = plan();
    plan.task("guarded", changed).when("never", |_| false);
    plan.task("after", changed).after("guarded");
    plan.task("after-change", changed).after("guarded").only_if_changed();
    plan.task("after-failure", changed).after("guarded").only_if_failed();
    check(
        plan,
        expect![[r"
            guarded: skipped: guard `never` does not hold
            after: changed
            after-change: skipped: no dependency changed
            after-failure: skipped: guard `some dependency failed` does not hold
        "]],
    )
    .await;
}

#[tokio::test]
async fn all_guards_must_hold() {
    let mut plan = plan();
    plan.task("a", changed);
    plan.task("both", changed).after("a").when("yes", |_| true).only_if_all_changed();
    plan.task("one", changed).after("a").only_if_all_changed().when("no", |_| false);
    check(
        plan,
        expect![[r"
            a: changed
            both: changed
            one: skipped: guard `no` does not hold
        "]],
    )
    .await;
}

#[tokio::test]
async fn when_sees_the_results_so_far() {
    let mut plan = plan();
    plan.task("a", changed);
    plan.task("seen", changed).after("a").when("a changed", |results| {
        results.get("a").is_some_and(orch_dag::TaskReport::is_changed) && results.get("nobody").is_none()
    });
    check(
        plan,
        expect![[r"
            a: changed
            seen: changed
        "]],
    )
    .await;
}

#[tokio::test]
async fn only_if_all_changed_asks_for_every_dependency_and_for_at_least_one() {
    let mut plan = plan();
    plan.task("a", changed);
    plan.task("b", unchanged);
    plan.task("all", changed).after("a").only_if_all_changed();
    plan.task("not-all", changed).after("a").after("b").only_if_all_changed();
    plan.task("none", changed).only_if_all_changed();
    check(
        plan,
        expect![[r"
            a: changed
            b: unchanged
            all: changed
            not-all: skipped: guard `all dependencies changed` does not hold
            none: skipped: guard `all dependencies changed` does not hold
        "]],
    )
    .await;
}

#[tokio::test]
async fn a_guard_that_looks_at_failures_lets_them_pass() {
    let mut plan = plan();
    plan.task("broken", failing);
    plan.task("between", changed).after("broken");
    plan.task("cleanup", changed).after("broken").only_if_failed();
    plan.task("cleanup-far", changed).after("between").only_if_failed();
    plan.task("always", changed).after("broken").even_if_failed();
    plan.task("plain-when", changed).after("broken").when("yes", |_| true);
    plan.task("after-cleanup", changed).after("cleanup");
    check(
        plan,
        expect![[r"
            broken: failed: broken
            between: skipped: dependency `broken` failed
            cleanup: changed
            cleanup-far: changed
            always: changed
            plain-when: skipped: dependency `broken` failed
            after-cleanup: changed
        "]],
    )
    .await;
}

#[tokio::test]
async fn only_if_changed_comes_before_the_guards_and_after_failures() {
    let mut plan = plan();
    plan.task("broken", failing);
    plan.task("same", unchanged);
    plan.task("failure-first", changed).after("broken").only_if_changed().when("no", |_| false);
    plan.task("change-second", changed).after("same").only_if_changed().when("no", |_| false);
    plan.task("change-before-failure-guard", changed).after("broken").only_if_changed().only_if_failed();
    check(
        plan,
        expect![[r"
            broken: failed: broken
            same: unchanged
            failure-first: skipped: dependency `broken` failed
            change-second: skipped: no dependency changed
            change-before-failure-guard: skipped: no dependency changed
        "]],
    )
    .await;
}

async fn two_hosts(first: HostStatus, second: HostStatus) -> Returned {
    Ok(Outcome::changed().host("one", first).host("two", second))
}

#[tokio::test]
async fn host_guards_look_at_the_hosts_of_all_dependencies() {
    for (status, other) in [(Failed, Unchanged), (Changed, Skipped), (Skipped, Failed)] {
        let mut plan = plan();
        plan.task("mixed", move |_| two_hosts(status, other));
        plan.task("pure", move |_| two_hosts(status, status));
        plan.task("hostless", changed);
        plan.task("any-yes", changed).after("mixed").only_if_any_host(status);
        plan.task("any-no", changed).after("pure").only_if_any_host(other);
        plan.task("all-yes", changed).after("pure").after("hostless").only_if_all_hosts(status);
        plan.task("all-no", changed).after("pure").after("mixed").only_if_all_hosts(status);
        plan.task("nothing", changed).after("hostless").only_if_all_hosts(status);
        let report = orch_dag::Runner::new().run(plan).await.unwrap();
        let ran: Vec<&str> = report.tasks[3..]
            .iter()
            .filter(|task| !task.status.is_skipped())
            .map(|task| &*task.name)
            .collect();
        assert_eq!(ran, ["any-yes", "all-yes"], "{status}");
    }
}

#[tokio::test]
async fn hosts_of_a_failed_task_are_seen_only_by_guards_that_look_at_failures() {
    let mut plan = plan();
    plan.task("broken", |_| async { Err(TaskError::new("broken").host("one", Failed).host("two", Changed)) });
    plan.task("repair", changed).after("broken").only_if_any_host(Failed);
    plan.task("total-loss", changed).after("broken").only_if_all_hosts(Failed);
    plan.task("reload", changed).after("broken").only_if_any_host(Changed);
    check(
        plan,
        expect![[r"
            broken: failed: broken
            repair: changed
            total-loss: skipped: guard `all hosts failed` does not hold
            reload: skipped: dependency `broken` failed
        "]],
    )
    .await;
}

#[tokio::test]
async fn a_guard_that_panics_fails_its_task() {
    let mut plan = plan();
    plan.task("a", changed).when("odd", |_| panic!("guard broke"));
    plan.task("b", changed).after("a");
    check(
        plan,
        expect![[r"
            a: failed: panicked: guard broke
            b: skipped: dependency `a` failed
        "]],
    )
    .await;
}
