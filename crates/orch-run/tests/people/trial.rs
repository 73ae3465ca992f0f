//! `test`: create, verify, destroy. Only what it made is destroyed, and what it made is destroyed.

use std::sync::Arc;
use std::time::Duration;

use orch_model::Fleet;
use orch_plan::{Goal, Selection, Verb, plan};
use orch_run::memory::MemoryProvider;
use orch_run::{Doors, HostLocks, Permit, Provider, RunId, Transport, Trial, TrialReport};

use crate::common::{Around, Driver, Effect, Gate, memory, own_fleet};
use crate::door::{Answer, doors};

const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i, depends_on: [a] }";

fn trial<'t>(fleet: &'t Fleet, doors: &'t Doors) -> Trial<'t> {
    Trial { fleet, only: &Selection::All, doors, deadline: Duration::from_millis(50) }
}

/// A trial on this host, whose driver may be stopped by `driver`'s control.
async fn tried<P: Provider + Transport + 'static>(
    host: &Arc<P>,
    fleet: &Fleet,
    doors: &Doors,
) -> TrialReport {
    tried_by(&Driver::of(host), fleet, doors).await
}

async fn tried_by(common: &Driver, fleet: &Fleet, doors: &Doors) -> TrialReport {
    let plan = plan(fleet, &common.observed().await, &Goal::of(Verb::Create)).unwrap();
    let run = RunId::new();
    let locks = HostLocks::take(&common.state, &fleet.site, &plan.hosts, &run, "test").unwrap();
    let driver = orch_run::Driver {
        registry: None,
        treasury: orch_run::NoTreasury::shared(),
        state: common.state.clone(),
        places: common.places.clone(),
        permit: Permit::under(locks),
        control: common.control.clone(),
        hooks: Arc::clone(&common.hooks),
        watch: Arc::new(|_, _| {}),
        herald: Arc::new(|_| {}),
        doors: common.doors.clone(),
        patience: common.patience.clone(),
    };
    trial(fleet, doors).run(&driver, run, &plan).await.unwrap()
}

/// `create 0, verify 2, destroy 0: 2`
fn summed(report: &TrialReport) -> String {
    let phases = report.phases.iter();
    let phases: Vec<String> =
        phases.map(|phase| format!("{} {}", phase.name(), u8::from(phase.exit_code()))).collect();
    format!("{}: {}", phases.join(", "), u8::from(report.exit_code))
}

fn refusing(world: &Arc<MemoryProvider>, at: (&'static str, &'static str)) -> Arc<Around> {
    Around::new(world, move |effect: Effect| async move {
        if (effect.verb, effect.node.as_str()) == at { Gate::Refused } else { Gate::Open }
    })
}

#[tokio::test]
async fn the_three_phases_follow_each_other_and_nothing_is_left() {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let report = tried(&world, &fleet, &doors(&[])).await;
    assert_eq!(summed(&report), "create 0, verify 0, destroy 0: 0", "{report}");
    assert_eq!((world.world().machines.len(), world.world().made), (0, 2));
}

#[tokio::test]
async fn a_node_that_is_not_what_it_should_be_fails_the_trial_and_is_destroyed() {
    for (answer, expected) in [
        (Answer::Drifted, "create 0, verify 2, destroy 0: 2"),
        (Answer::Ill, "create 0, verify 2, destroy 0: 2"),
        (Answer::Gone, "create 0, verify 2, destroy 0: 2"),
    ] {
        let (world, fleet) = (memory(), own_fleet("", NODES));
        let report = tried(&world, &fleet, &doors(&[("b", answer)])).await;
        assert_eq!(summed(&report), expected, "{report}");
        assert_eq!(world.world().machines.len(), 0);
    }
}

#[tokio::test]
async fn what_could_not_be_made_is_not_verified_and_what_was_is_destroyed() {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let report = tried(&refusing(&world, ("configure", "b")), &fleet, &doors(&[])).await;
    assert_eq!(summed(&report), "create 2, destroy 0: 2", "{report}");
    assert_eq!((world.world().machines.len(), world.world().made), (0, 2));
}

#[tokio::test]
async fn a_manifest_may_ask_to_leave_what_failed() {
    let (world, fleet) = (memory(), own_fleet("cleanup_on_failure: false", NODES));
    let report = tried(&refusing(&world, ("configure", "b")), &fleet, &doors(&[])).await;
    assert_eq!(summed(&report), "create 2: 2", "{report}");
    assert_eq!(world.world().machines.len(), 2);
    assert!(report.to_string().contains("left as it is: the manifest says"), "{report}");
    let world = memory();
    let report = tried(&world, &fleet, &doors(&[])).await;
    assert_eq!(summed(&report), "create 0, verify 0, destroy 0: 0", "a success is cleaned up: {report}");
    assert_eq!(world.world().machines.len(), 0);
}

#[tokio::test]
async fn what_cannot_be_destroyed_is_the_trials_failure() {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let report = tried(&refusing(&world, ("destroy", "b")), &fleet, &doors(&[])).await;
    assert_eq!(summed(&report), "create 0, verify 0, destroy 1: 1", "{report}");
    assert_eq!(world.world().machines.len(), 2, "what `b` needs stays as long as `b` does");
}

#[tokio::test]
async fn a_stop_ends_the_making_and_what_was_made_is_destroyed() {
    let (world, fleet) = (memory(), own_fleet("parallelism: 1", NODES));
    let control = orch_run::Control::new();
    let pressed = control.clone();
    let host = Around::new(&world, move |effect: Effect| {
        if (effect.verb, effect.node.as_str()) == ("configure", "a") {
            pressed.stop();
        }
        async { Gate::Open }
    });
    let driver = Driver { control, ..Driver::of(&host) };
    let report = tried_by(&driver, &fleet, &doors(&[])).await;
    assert_eq!(summed(&report), "create 2, destroy 0: 2", "{report}");
    assert_eq!((world.world().machines.len(), world.world().made), (0, 1));
}

#[tokio::test]
async fn a_cancel_leaves_what_was_made() {
    let (world, fleet) = (memory(), own_fleet("parallelism: 1", NODES));
    let control = orch_run::Control::new();
    let pressed = control.clone();
    let host = Around::new(&world, move |effect: Effect| {
        if (effect.verb, effect.node.as_str()) == ("create", "b") {
            pressed.cancel();
        }
        async { Gate::Open }
    });
    let driver = Driver { control, ..Driver::of(&host) };
    let report = tried_by(&driver, &fleet, &doors(&[])).await;
    assert_ne!(u8::from(report.exit_code), 0, "{report}");
    assert!(!world.world().machines.is_empty(), "nothing is begun after a cancel: {report}");
}

#[tokio::test]
async fn nodes_that_are_there_are_named_and_so_are_leftovers() {
    let world = memory();
    let driver = Driver::of(&world);
    let (fleet, no_doors) = (own_fleet("", NODES), Doors::new());
    assert!(trial(&fleet, &no_doors).in_the_way(&driver.observed().await).unwrap().is_empty());
    driver.create(&fleet).await;
    let (first, _) = NODES.split_once('\n').unwrap();
    for fleet in [&fleet, &own_fleet("", first)] {
        let named = trial(fleet, &no_doors).in_the_way(&driver.observed().await).unwrap();
        let named: Vec<&str> = named.iter().map(orch_model::NodeName::as_str).collect();
        assert_eq!(named, ["a", "b"]);
    }
}
