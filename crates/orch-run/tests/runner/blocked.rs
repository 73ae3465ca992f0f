//! Nodes that must not be touched, as the plan knows already, and hosts that do not answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::Config;
use orch_plan::{HostView, Machine, MachineState, Verb};
use orch_run::{
    Configured, Done, ExitCode, NodeStatus, Order, Permit, Places, Provider, ProviderError, Scope, Target,
    Transport, TransportError,
};

use crate::common::{
    Driver, exit_code, faulty, fleet, host, memory, own_fleet, place, sample_fleet, statuses, why,
};

const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i }
  - { name: c, type: vm, spec: base, preset: small, image: i, depends_on: [a] }";

/// Runs `create` where two machines bear the mark of `a`, `b` is missing and `c` waits for `a`.
async fn with_a_node_that_is_doubled(on_error: &str) -> (String, u8, usize, orch_run::Report) {
    let (world, host) = faulty(Vec::new());
    let driver = Driver::of(&host);
    let fleet = own_fleet(&format!("on_error: {on_error}"), NODES);
    driver.create(&own_fleet("", NODES.lines().next().expect("there is a first line"))).await;
    let copied = world.world().machines[0].clone();
    world.put(Machine { id: "copy".into(), name: "by-hand".into(), ..copied });
    let before = host.effects();
    let report = driver.create(&fleet).await;
    (statuses(&report), exit_code(&report), host.effects() - before, report)
}

#[tokio::test]
async fn with_stop_or_rollback_nothing_at_all_is_started_when_a_node_must_not_be_touched() {
    for on_error in ["stop", "rollback"] {
        let (statuses, exit, effects, report) = with_a_node_that_is_doubled(on_error).await;
        assert_eq!((statuses.as_str(), exit, effects), ("a failed, b skipped, c skipped", 1, 0), "{report}");
        assert!(why(&report, "a").starts_with("two machines bear its mark"), "{report}");
        assert_eq!(why(&report, "b"), "the run stopped when `a` failed");
        assert!(!report.rolled_back, "{report}");
    }
}

#[tokio::test]
async fn with_continue_the_others_go_on_and_those_that_wait_for_it_do_not() {
    let (statuses, exit, effects, report) = with_a_node_that_is_doubled("continue").await;
    assert_eq!((statuses.as_str(), exit, effects), ("a failed, b changed, c skipped", 2, 2), "{report}");
    assert_eq!(why(&report, "c"), "`a` failed");
}

#[tokio::test]
async fn whoever_is_told_that_a_node_must_not_be_touched_is_told_what_to_try() {
    for on_error in ["stop", "rollback", "continue"] {
        let (_, _, _, report) = with_a_node_that_is_doubled(on_error).await;
        assert!(report.nodes[0].hint.is_some(), "{on_error}: {report}");
    }
}

#[tokio::test]
async fn a_node_that_needs_replacing_is_mended_in_place_holds_up_nobody_and_is_told() {
    for on_error in ["stop", "rollback", "continue"] {
        let (world, host) = faulty(Vec::new());
        let driver = Driver::of(&host);
        driver.create(&own_fleet("", NODES.lines().next().expect("there is a first line"))).await;
        world.tamper("m-a", |machine| {
            machine.image = Some("another".into());
            machine.state = MachineState::Stopped;
        });
        let report = driver.create(&own_fleet(&format!("on_error: {on_error}"), NODES)).await;
        assert_eq!(statuses(&report), "a changed, b changed, c changed", "{report}");
        let hint = report.nodes[0].hint.as_deref().unwrap_or_default();
        assert!(
            hint.contains("image another -> this-machine") && hint.contains("needs --replace"),
            "{report}"
        );
        assert_eq!(world.world().machines[0].state, MachineState::Running);
    }
}

/// A host that nobody can reach.
struct Dead;

#[async_trait]
impl Provider for Dead {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        Err(ProviderError::NoAnswer { host: scope.host.clone(), why: "no route".into() })
    }

    async fn apply(&self, order: &Order, _: &Permit) -> Result<Done, ProviderError> {
        unreachable!("{} of a node on a dead host", order.action.verb())
    }
}

#[async_trait]
impl Transport for Dead {
    async fn configure(&self, target: &Target, _: &Config, _: &Permit) -> Result<Configured, TransportError> {
        unreachable!("{} on a dead host", target.identity)
    }
}

/// A host that is silent for ever.
struct Mute;

#[async_trait]
impl Provider for Mute {
    async fn observe(&self, _: &Scope) -> Result<HostView, ProviderError> {
        std::future::pending().await
    }

    async fn apply(&self, order: &Order, _: &Permit) -> Result<Done, ProviderError> {
        unreachable!("{} of a node on a mute host", order.action.verb())
    }
}

#[async_trait]
impl Transport for Mute {
    async fn configure(&self, target: &Target, _: &Config, _: &Permit) -> Result<Configured, TransportError> {
        unreachable!("{} on a mute host", target.identity)
    }
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_stops_everything_or_its_own_nodes_as_the_manifest_says() {
    for (on_error, expected, exit, made) in [
        ("stop", "a skipped, b failed, c skipped", 1, 0),
        ("continue", "a changed, b failed, c changed", 2, 2),
    ] {
        let settings = format!("pattern: mesh\nsettings: {{ on_error: {on_error} }}");
        let fleet = sample_fleet("cluster", &[("manifests/cluster.yaml", "pattern: mesh", &settings)]);
        let (father, cloud) = (memory(), memory());
        let places: Places = [
            (host("father"), place(&father)),
            (host("mother"), place(&Arc::new(Dead))),
            (host("cloud"), place(&cloud)),
        ]
        .into();
        let report = Driver::on(places).create(&fleet).await;
        assert_eq!((statuses(&report).as_str(), exit_code(&report)), (expected, exit), "{report}");
        assert!(why(&report, "b").contains("host `mother` cannot be looked at"), "{report}");
        assert!(why(&report, "b").contains("no route"), "{report}");
        assert_eq!(father.world().made + cloud.world().made, made);
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_answers_a_look_holds_nobody_up_for_ever() {
    let places: Places =
        [(host("father"), place(&memory())), (host("mother"), place(&Arc::new(Mute)))].into();
    let mut driver = Driver::on(places);
    driver.patience.look = Duration::from_secs(30);
    let observed = driver.observed().await;
    assert!(matches!(observed.hosts[&host("father")], HostView::Seen { .. }));
    let HostView::Unreachable { why } = &observed.hosts[&host("mother")] else { unreachable!("it is mute") };
    assert_eq!(why, "no answer within 30s");
}

#[tokio::test]
async fn destroy_keeps_a_parent_whose_child_could_not_be_taken_down() {
    let fleet = fleet("nested-test");
    let world = memory();
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    let refusing = crate::common::Around::new(&world, |effect| async move {
        if effect.node == "test-vm" { crate::common::Gate::Refused } else { crate::common::Gate::Open }
    });
    let report = driver.now_of(&refusing).destroy(&fleet).await;
    assert_eq!(statuses(&report), "inner-pve skipped, test-vm failed", "{report}");
    assert_eq!(world.world().machines.len(), 2);
}

#[tokio::test]
async fn a_plan_for_a_host_that_the_driver_was_not_given_touches_nothing_and_says_so() {
    let fleet = own_fleet("parallelism: 1", NODES);
    let driver = Driver::of(&memory());
    let plan = driver.planned(&fleet, Verb::Create).await;
    let elsewhere = Driver::on([(host("mother"), place(&memory()))].into());
    let report = elsewhere.run(&plan).await;
    assert_eq!((report.exit_code, report.count(NodeStatus::Failed)), (Some(ExitCode::Failed), 1), "{report}");
    assert!(why(&report, "a").contains("it is not part of this run"), "{report}");
}

#[tokio::test]
async fn a_host_whose_lock_is_not_held_is_not_touched() {
    let fleet =
        own_fleet("on_error: rollback", "  - { name: a, type: vm, spec: base, preset: small, image: i }");
    let (world, provider) = faulty(Vec::new());
    let driver = Driver::of(&provider);
    let plan = driver.planned(&fleet, Verb::Create).await;
    for held in [[].into(), [host("mother")].into()] {
        let report = driver.run_under(&plan, &held).await;
        assert_eq!((statuses(&report).as_str(), exit_code(&report)), ("a failed", 1), "{held:?}: {report}");
        assert!(why(&report, "a").contains("`father` refused: its lock is not held"), "{held:?}: {report}");
        assert_eq!((provider.effects(), world.world().machines.len()), (0, 0), "{held:?}: {report}");
    }
    let report = driver.run_under(&plan, &[host("father"), host("mother")].into()).await;
    assert_eq!((statuses(&report).as_str(), world.world().made), ("a changed", 1), "{report}");
}
