//! A rollback takes down what this run made, all of it and nothing else, and says what it could not take down.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use orch_model::Fleet;
use orch_plan::HostView;
use orch_run::memory::{Fault, FaultKind, MemoryProvider};
use orch_run::{
    Done, Entry, ExitCode, NodeStatus, Order, Permit, Pin, Place, Provider, ProviderError, Scope,
};

use crate::common::{
    Around, Driver, Effect, Gate, faulty, host, memory, ours, own_fleet, place, statuses, strangers, why,
};

/// A tree of two and a third beside it.
const NODES: &str = "  - { name: hub, type: pve, spec: pve, preset: small, image: i }
  - { name: leaf, type: vm, spec: base, preset: small, image: i, parent: hub }
  - { name: last, type: vm, spec: base, preset: small, image: i, depends_on: [leaf] }";

fn tree() -> Fleet {
    own_fleet("on_error: rollback, parallelism: 1", NODES)
}

/// The same manifest before the other two were added to it.
fn only_hub() -> Fleet {
    own_fleet("", NODES.lines().next().expect("there is a first line"))
}

/// A host on which these effects of these nodes never happen.
fn refusing(world: &Arc<MemoryProvider>, refused: &'static [(&'static str, &'static str)]) -> Arc<Around> {
    Around::new(world, move |effect: Effect| {
        let is_refused = refused.contains(&(effect.verb, effect.node.as_str()));
        async move { if is_refused { Gate::Refused } else { Gate::Open } }
    })
}

#[tokio::test]
async fn nothing_remains_of_what_the_run_made_wherever_it_failed() {
    for nth in 1..=6 {
        let fleet = tree();
        let (world, host) = faulty(vec![Fault::nth(nth, FaultKind::Refuse)]);
        let strangers = strangers(&fleet);
        strangers.iter().cloned().for_each(|stranger| world.put(stranger));
        let report = Driver::of(&host).create(&fleet).await;
        assert_eq!(world.world().machines, strangers, "effect {nth}: {report}");
        assert_eq!(report.exit_code, Some(ExitCode::Failed), "effect {nth}: {report}");
        assert!(report.rolled_back, "effect {nth}: {report}");
        assert_eq!(report.count(NodeStatus::Failed), 1, "effect {nth}: {report}");
    }
}

#[tokio::test]
async fn what_was_there_before_stays_as_it_was_and_the_exit_code_is_that_of_a_rollback() {
    let fleet = tree();
    let world = memory();
    let driver = Driver::of(&world);
    driver.create(&only_hub()).await;
    let before = world.world().machines;
    let report = driver.now_of(&refusing(&world, &[("create", "last")])).create(&fleet).await;
    assert_eq!(statuses(&report), "hub unchanged, leaf skipped, last failed", "{report}");
    assert_eq!(world.world().machines, before, "{report}");
    assert_eq!(report.exit_code, Some(ExitCode::Failed), "a completed rollback is 1: {report}");
}

#[tokio::test]
async fn a_machine_that_was_adopted_was_not_made_by_this_run_and_stays() {
    let fleet = tree();
    let world = memory();
    let driver = Driver::of(&world);
    driver.create(&only_hub()).await;
    world.tamper("m-hub", |machine| machine.state = orch_plan::MachineState::Partial);
    let report = driver.now_of(&refusing(&world, &[("create", "leaf")])).create(&fleet).await;
    assert_eq!(statuses(&report), "hub changed, leaf failed, last skipped", "{report}");
    assert_eq!(ours(&fleet, &world.world().machines), ["hub".to_owned()].into());
}

#[tokio::test]
async fn what_cannot_be_taken_down_is_told_and_what_it_lives_on_is_kept() {
    let fleet = tree();
    let world = memory();
    let host = refusing(&world, &[("create", "last"), ("destroy", "leaf")]);
    let report = Driver::of(&host).create(&fleet).await;
    assert_eq!(statuses(&report), "hub failed, leaf failed, last failed", "{report}");
    assert!(why(&report, "leaf").contains("could not be taken down again: `father` refused"), "{report}");
    assert!(
        why(&report, "hub").contains("could not be taken down again: what needs it could not be"),
        "{report}"
    );
    assert!(!report.rolled_back, "a rollback that left something is not one: {report}");
    assert_eq!(report.exit_code, Some(ExitCode::Failed));
    let left = ours(&fleet, &world.world().machines);
    assert_eq!(left, ["hub".to_owned(), "leaf".to_owned()].into());
    assert!(report.nodes[1].hint.is_some(), "the way out is told: {report}");
}

#[tokio::test]
async fn a_passing_failure_while_taking_down_is_tried_again() {
    let fleet = tree();
    let world = memory();
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let host = Around::new(&world, move |effect: Effect| {
        let first = effect.verb == "destroy" && counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            match (effect.verb, effect.node.as_str(), first) {
                ("create", "last", _) => Gate::Refused,
                (_, _, true) => Gate::NoAnswer,
                _ => Gate::Open,
            }
        }
    });
    let report = Driver::of(&host).retrying(2).create(&fleet).await;
    assert!(world.world().machines.is_empty(), "{report}");
    assert_eq!((report.exit_code, report.rolled_back), (Some(ExitCode::Failed), true), "{report}");
    assert_eq!(tries.load(Ordering::SeqCst), 3, "two machines, one of them asked for twice");
}

#[tokio::test]
async fn a_machine_that_was_made_and_could_not_be_configured_is_taken_down_as_well() {
    let fleet = tree();
    let world = memory();
    let report = Driver::of(&refusing(&world, &[("configure", "leaf")])).create(&fleet).await;
    assert!(world.world().machines.is_empty(), "{report}");
    assert_eq!(statuses(&report), "hub skipped, leaf failed, last skipped");
    assert!(why(&report, "leaf").ends_with("rolled back"), "{report}");
    assert_eq!(why(&report, "hub"), "rolled back, because another node failed");
}

#[tokio::test]
async fn a_failed_config_or_destroy_takes_nothing_down() {
    let fleet = tree();
    let world = memory();
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    world.tamper("m-leaf", |machine| machine.applied = orch_plan::Applied::Never);
    let report = driver.now_of(&refusing(&world, &[("configure", "leaf")])).config(&fleet).await;
    assert_eq!((rolled_back(&driver), world.world().machines.len()), (0, 3), "{report}");
    let report = driver.now_of(&refusing(&world, &[("destroy", "leaf")])).destroy(&fleet).await;
    assert_eq!((rolled_back(&driver), world.world().machines.len()), (0, 2), "{report}");
}

fn rolled_back(driver: &Driver) -> usize {
    driver.entries().iter().filter(|entry| matches!(entry, Entry::RollingBack { .. })).count()
}

#[tokio::test]
async fn the_intent_to_take_down_is_written_before_it_is_done() {
    let fleet = tree();
    let world = memory();
    let driver = Driver::of(&refusing(&world, &[("create", "last")]));
    driver.create(&fleet).await;
    let told: Vec<String> = driver.entries().iter().filter_map(taking_down).collect();
    let expected = ["begin last", "done last", "begin leaf", "done leaf", "begin hub", "done hub"];
    assert_eq!(told, expected, "children first");
}

fn taking_down(entry: &Entry) -> Option<String> {
    match entry {
        Entry::RollingBack { node, .. } => Some(format!("begin {}", node.node)),
        Entry::RolledBack { node, error: None, .. } => Some(format!("done {}", node.node)),
        _ => None,
    }
}

/// A host that shows what is there until it is told to take something down, and then says that it cannot be seen.
struct Vanishing {
    inner: Arc<MemoryProvider>,
    looks: AtomicUsize,
}

#[async_trait]
impl Provider for Vanishing {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        // The plan, what is read back of the two steps that bring `hub` up, and by what that is known; the step after those
        // is refused.
        if self.looks.fetch_add(1, Ordering::SeqCst) < 4 {
            return self.inner.observe(scope).await;
        }
        Ok(HostView::Unreachable { why: "the line is cut".into() })
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        if order.identity.node.as_str() == "leaf" {
            return Err(ProviderError::Refused { host: order.identity.host.clone(), why: "full".into() });
        }
        self.inner.apply(order, permit).await
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        self.inner.pin(pin, permit).await
    }
}

#[tokio::test]
async fn a_host_that_can_no_longer_be_seen_is_not_taken_for_an_empty_one() {
    let world = memory();
    let provider = Arc::new(Vanishing { inner: Arc::clone(&world), looks: AtomicUsize::new(0) });
    let place = Place { provider, ..place(&world) };
    let report = Driver::on([(host("father"), place)].into()).create(&tree()).await;
    assert_eq!(world.world().machines.len(), 1, "it could not be taken down");
    assert!(!report.rolled_back, "{report}");
    assert!(why(&report, "hub").contains("could not be taken down again"), "{report}");
    assert!(why(&report, "leaf").contains("the line is cut"), "{report}");
}
