//! What is refused before anything runs.

use expect_test::{Expect, expect};
use orch_dag::{Entry, Plan, Resume, Runner};

use crate::support::{Log, changed, seconds};

fn check(plan: &Plan, expected: &Expect) {
    let problems = plan.validate().unwrap_err().problems;
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn duplicate_names_are_refused_once_each() {
    let mut plan = Plan::new("p");
    for name in ["a", "b", "a", "a"] {
        plan.task(name, changed);
    }
    check(&plan, &expect!["task `a` is defined more than once"]);
}

#[test]
fn a_cycle_is_shown_as_a_path() {
    let mut plan = Plan::new("p");
    plan.task("start", changed).after("a");
    plan.task("a", changed).after("b");
    plan.task("b", changed).after("c");
    plan.task("c", changed).after("a");
    plan.task("end", changed).after("start");
    check(&plan, &expect!["tasks wait for each other: `a -> b -> c -> a`"]);
}

#[test]
fn a_task_that_waits_for_itself_is_a_cycle() {
    let mut plan = Plan::new("p");
    plan.task("a", changed).after("a");
    check(&plan, &expect!["tasks wait for each other: `a -> a`"]);
}

#[test]
fn a_cycle_behind_another_is_found_too() {
    let mut plan = Plan::new("p");
    plan.task("a", changed).after("b");
    plan.task("b", changed).after("a");
    plan.task("c", changed).after("a").after("d");
    plan.task("d", changed).after("c");
    check(
        &plan,
        &expect![[r"
            tasks wait for each other: `a -> b -> a`
            tasks wait for each other: `c -> d -> c`"]],
    );
}

#[test]
fn dependencies_outside_the_plan_are_refused() {
    let mut other: Plan = Plan::new("other");
    let foreign = other.task("a", changed).id();
    let mut plan = Plan::new("p");
    plan.task("a", changed).after("ghost").after(foreign);
    check(
        &plan,
        &expect![[r"
            task `a` waits for `ghost`, which is not in the plan
            task `a` waits for a task of another plan"]],
    );
}

#[tokio::test]
async fn all_problems_come_at_once_and_nothing_is_run() {
    let log = Log::default();
    let mut plan = Plan::new("p");
    plan.task("fine", log.task(seconds(0)));
    plan.task("a", changed).after("ghost");
    plan.task("a", changed);
    plan.task("c", changed).after("c");
    let stranger = Entry::Started { task: "gone".into(), attempt: 1 };
    let error = Runner::new().resume(Resume::new([stranger])).run(plan).await.unwrap_err();
    expect![[r"plan `p` cannot be run: task `a` is defined more than once; task `a` waits for `ghost`, which is not in the plan; tasks wait for each other: `c -> c`; the journal tells of task `gone`, which is not in the plan"]].assert_eq(&error.to_string());
    assert_eq!(log.text(), "");
}

#[tokio::test]
async fn a_chain_as_long_as_the_plan_does_not_exhaust_the_stack() {
    let mut plan = Plan::new("p");
    for index in 0..50_000 {
        plan.task(format!("t{index}"), changed).after(format!("t{}", index + 1));
    }
    plan.task("t50000", changed);
    assert!(Runner::new().run(plan).await.unwrap().is_success());
}
