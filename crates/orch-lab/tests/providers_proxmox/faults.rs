//! What goes wrong on purpose, in every action: each cell says how it ends. Afterwards the stranger is as it was, the same
//! order heals what is there, and in the end nothing is left.

use std::time::Duration;

use orch_lab::{Fault, Rule};
use orch_model::Size;
use orch_plan::{Action, MachineState};
use orch_providers::api::Method;
use orch_run::{Done, Order, ProviderError};

use crate::world::{Driver, SMALLEST, World, create, spec};

const STRANGER: u32 = 10_900;
const NUMBER: u32 = 10_100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Observe,
    Create,
    Start,
    Resize,
    Destroy,
}

const ACTS: [Act; 5] = [Act::Observe, Act::Create, Act::Start, Act::Resize, Act::Destroy];

/// How an action ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// As if nothing had gone wrong.
    Well,
    /// Asking again could help.
    NoAnswer,
    Failed,
    Refused,
    Late,
}

impl Ends {
    fn of(done: &Result<(), ProviderError>) -> Self {
        match done {
            Ok(()) => Self::Well,
            Err(ProviderError::NoAnswer { .. }) => Self::NoAnswer,
            Err(ProviderError::Failed { .. }) => Self::Failed,
            Err(ProviderError::Refused { .. } | ProviderError::NotOurs { .. }) => Self::Refused,
            Err(ProviderError::Late { .. }) => Self::Late,
        }
    }
}

/// The question that an action is about.
const fn question(act: Act) -> (&'static str, &'static str) {
    match act {
        Act::Observe => ("GET", "/cluster/resources"),
        Act::Create => ("POST", "/clone"),
        Act::Start => ("POST", "/status/start"),
        Act::Resize => ("PUT", "/config"),
        Act::Destroy => ("DELETE", "/qemu/"),
    }
}

/// The question of an action that begins a task.
const fn task(act: Act) -> (&'static str, &'static str) {
    match act {
        Act::Resize => ("PUT", "/resize"),
        act => question(act),
    }
}

/// Puts one fault through one action.
async fn cell(act: Act, rules: &[Rule], ends: Ends, what: &str) {
    let world = World::with(|settings| settings.description = None);
    world.put_stranger(STRANGER, "precious").await;
    let before = world.config(STRANGER).await;
    let made = create("web", NUMBER);
    let order = prepared(&world, act, &made).await;
    // A fresh driver, which knows nothing and has no connection yet.
    let driver =
        world.driver_with(|setup| setup.reach = rules_wait(rules).then_some(Duration::from_millis(300)));
    for rule in rules {
        world.faults.add(rule.clone());
    }
    let done = carry_out(&driver, act, &order).await;
    world.faults.clear();
    assert_eq!(Ends::of(&done), ends, "{what} in {act:?}: {done:?}");
    if let Err(error) = &done {
        let told = format!("{error} {error:?} {}", error.hint());
        assert!(
            !told.contains("PRIVATE KEY") && !told.contains("0123-4567"),
            "{what} in {act:?} tells a secret"
        );
        assert!(!error.hint().is_empty());
    }
    heal(&world, act, &order, &made).await;
    assert_eq!(world.config(STRANGER).await, before, "{what} in {act:?}: the stranger is as it was");
}

fn rules_wait(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.fault == Fault::AgentSilent)
}

/// The world in which an action makes sense, and its order.
async fn prepared(world: &World, act: Act, made: &Order) -> Order {
    if matches!(act, Act::Observe | Act::Create) {
        return made.clone();
    }
    let driver = world.driver();
    driver.apply(made).await.unwrap();
    let machine = driver.reference(made).await;
    let action = match act {
        Act::Start => {
            world.task_by_hand(Method::Post, &format!("/nodes/pve1/qemu/{NUMBER}/status/stop"), &[]).await;
            Action::Start { machine }
        }
        Act::Resize => {
            Action::Resize { machine, from: SMALLEST, to: Size { memory: 1024, disk: 3, ..SMALLEST } }
        }
        _ => Action::Destroy { machine },
    };
    Order { action, ..made.clone() }
}

async fn carry_out(driver: &Driver, act: Act, order: &Order) -> Result<(), ProviderError> {
    if act == Act::Observe { driver.look().await.map(|_| ()) } else { driver.apply(order).await.map(|_| ()) }
}

/// The same order again, by another driver, makes it so; and then everything goes.
async fn heal(world: &World, act: Act, order: &Order, made: &Order) {
    let driver = world.driver();
    driver.look().await.unwrap();
    let mut order = order.clone();
    let snatched = world.by_hand(Method::Get, &format!("/nodes/pve1/qemu/{NUMBER}/config"), &[]).await;
    if act == Act::Create && snatched.is_ok_and(|config| config["name"] == "stranger") {
        // The next plan takes another number.
        order.action = Action::Create { machine: spec("workers-web", NUMBER + 1) };
    }
    carry_out(&driver, act, &order).await.unwrap_or_else(|error| panic!("{act:?} is not healed: {error:?}"));
    if !matches!(act, Act::Observe | Act::Destroy) {
        let mut machine = driver.machine(&order).await.expect("it is there");
        if act == Act::Resize && machine.state == MachineState::Stopped {
            // The next plan starts it.
            let action = Action::Start { machine: driver.reference(made).await };
            driver.apply(&Order { action, ..made.clone() }).await.unwrap();
            machine = driver.machine(&order).await.expect("it is there");
        }
        assert_eq!(machine.state, MachineState::Running, "{act:?}");
        let machine = driver.reference(made).await;
        let done = driver.apply(&Order { action: Action::Destroy { machine }, ..made.clone() }).await;
        assert_eq!(done.unwrap(), Done::Changed);
    }
    let mut left = world.numbers().await;
    left.retain(|number| *number != u64::from(NUMBER) || act != Act::Create);
    assert_eq!(left, [u64::from(STRANGER)], "{act:?} leaves nothing");
    assert_eq!(world.discs().await, Vec::<String>::new(), "{act:?} leaves nothing to start with");
}

/// Runs cells side by side.
async fn every(cells: Vec<(Act, Vec<Rule>, Ends)>, what: &'static str) {
    let mut running = tokio::task::JoinSet::new();
    for (act, rules, ends) in cells {
        running.spawn(async move { cell(act, &rules, ends, what).await });
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

fn everywhere(rule: impl Fn(Act) -> Rule, ends: impl Fn(Act) -> Ends) -> Vec<(Act, Vec<Rule>, Ends)> {
    ACTS.into_iter().map(|act| (act, vec![rule(act)], ends(act))).collect()
}

fn once(fault: Fault, (method, path): (&str, &str)) -> Rule {
    Rule::once(fault).on(method, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_told_to_come_later_does() {
    let some = |_| Rule { times: Some(2), ..Rule::always(Fault::TooMany) };
    every(everywhere(some, |_| Ends::Well), "429 twice").await;
    every(everywhere(|_| Rule::always(Fault::TooMany), |_| Ends::NoAnswer), "429 always").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_on_the_way_is_lived_through_once_and_told_when_it_stays() {
    every(everywhere(|act| once(Fault::ServerError, question(act)), |_| Ends::Well), "500 once").await;
    every(everywhere(|_| Rule::always(Fault::ServerError), |_| Ends::NoAnswer), "500 always").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_neither_doubles_nor_fails() {
    every(everywhere(|act| once(Fault::SilentAfter, question(act)), |_| Ends::Well), "silence").await;
    every(everywhere(|act| once(Fault::CutAnswer, question(act)), |_| Ends::Well), "a cut answer").await;
    let resized = vec![(Act::Resize, vec![once(Fault::SilentAfter, task(Act::Resize))], Ends::Well)];
    every(resized, "silence while the disk grows").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_fails_is_told_and_one_that_never_ends_is_late() {
    let ends = |then: Ends| move |act: Act| if act == Act::Observe { Ends::Well } else { then };
    every(everywhere(|act| once(Fault::TaskFails, task(act)), ends(Ends::Failed)), "a failed task").await;
    every(everywhere(|act| once(Fault::TaskNeverEnds, task(act)), ends(Ends::Late)), "an endless task").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_waited_for_a_few_times() {
    let always = |act| {
        let (method, path) = task(act);
        Rule::always(Fault::LockTimeout).on(method, path)
    };
    let ends = |act: Act| if act == Act::Observe { Ends::Well } else { Ends::Failed };
    every(everywhere(|act| once(Fault::LockTimeout, task(act)), |_| Ends::Well), "a lock once").await;
    every(everywhere(always, ends), "a lock always").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_a_stranger_took_meanwhile_is_the_strangers() {
    let rule = |act| once(Fault::StrangerTakesId, question(act));
    every(everywhere(rule, |act| if act == Act::Create { Ends::Refused } else { Ends::Well }), "a stranger")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_agent_is_waited_for_and_then_told() {
    let ends =
        |act| if matches!(act, Act::Create | Act::Start | Act::Resize) { Ends::Late } else { Ends::Well };
    every(everywhere(|_| Rule::always(Fault::AgentSilent), ends), "a silent agent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_privilege_is_told_at_once() {
    let rule = |act| {
        let (method, path) = question(act);
        Rule::always(Fault::NoPrivilege).on(method, path)
    };
    every(
        everywhere(rule, |act| if act == Act::Observe { Ends::Well } else { Ends::Failed }),
        "no privilege",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_shows_another_certificate_is_told_nothing() {
    every(everywhere(|_| Rule::always(Fault::OtherCertificate), |_| Ends::Failed), "another certificate")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_has_too_little_of_is_told() {
    let space = |act| if matches!(act, Act::Create | Act::Resize) { Ends::Failed } else { Ends::Well };
    every(everywhere(|act| once(Fault::Quota, task(act)), space), "no space").await;
    // A machine that runs is started anew where its memory changes.
    let memory =
        |act| if matches!(act, Act::Create | Act::Start | Act::Resize) { Ends::Failed } else { Ends::Well };
    every(everywhere(|_| Rule::once(Fault::OutOfStock), memory), "no memory").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_out_is_told_by_what_went_wrong() {
    for (fault, act, words) in [
        (Fault::Quota, Act::Create, "make room"),
        (Fault::OutOfStock, Act::Create, "memory"),
        (Fault::NoPrivilege, Act::Create, "pveum acl modify"),
    ] {
        let world = World::with(|settings| settings.description = None);
        let rule = if fault == Fault::OutOfStock { Rule::once(fault) } else { once(fault, task(act)) };
        world.faults.add(rule);
        let error = world.driver().apply(&create("web", NUMBER)).await.unwrap_err();
        assert!(error.hint().contains(words), "{fault:?}: {}", error.hint());
    }
}
