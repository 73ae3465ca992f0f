//! Parents before children, children down first, peers at once, never more at once than allowed, and never twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch_model::Fleet;
use orch_plan::{Goal, MachineState, Verb, plan};
use orch_run::memory::MemoryProvider;
use orch_run::{ExitCode, NodeStatus};
use tokio::sync::Barrier;
use tokio::time::timeout;

use crate::common::{
    Around, Driver, Gate, assert_as_wanted, faulty, fleet, memory, ours, own_fleet, statuses, steps,
    strangers, with_ids,
};

/// Far more than a run in memory takes: only a run that waits for ever reaches it.
const EVER: Duration = Duration::from_secs(30);

/// The effects that reached a host, in their order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// What was noted since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics while holding this"))
    }
}

/// A host that notes the effects that reach it.
fn noting(world: &Arc<MemoryProvider>) -> (Arc<Around>, Log) {
    let log = Log::default();
    let noted = log.clone();
    let host = Around::new(world, move |effect| {
        let effect = format!("{} {}", effect.verb, effect.node);
        noted.0.lock().expect("nobody panics while holding this").push(effect);
        async { Gate::Open }
    });
    (host, log)
}

async fn check_life(fleet: &Fleet, up: &[&str], down: &[&str]) {
    let world = memory();
    let strangers = strangers(fleet);
    strangers.iter().cloned().for_each(|stranger| world.put(stranger));
    let (host, log) = noting(&world);
    let driver = Driver::of(&host);

    let created = driver.create(fleet).await;
    assert_eq!(
        (created.exit_code, created.count(NodeStatus::Changed)),
        (Some(ExitCode::Done), fleet.nodes.len())
    );
    assert_eq!(log.take(), up, "the order in which nodes come up");
    assert_as_wanted(fleet, &world.world().machines);

    let again = driver.create(fleet).await;
    assert_eq!(
        (again.exit_code, again.count(NodeStatus::Unchanged)),
        (Some(ExitCode::Done), fleet.nodes.len())
    );
    let destroyed = driver.destroy(fleet).await;
    assert_eq!(
        (destroyed.exit_code, destroyed.count(NodeStatus::Changed)),
        (Some(ExitCode::Done), fleet.nodes.len())
    );
    assert_eq!(log.take(), down, "nothing for the second create, then the order in which nodes come down");

    let twice = driver.destroy(fleet).await;
    assert_eq!(
        (twice.exit_code, twice.count(NodeStatus::Unchanged)),
        (Some(ExitCode::Done), fleet.nodes.len())
    );
    assert_eq!(log.take(), [""; 0], "what is gone is not destroyed again");
    assert_eq!(world.world().machines, strangers, "strangers are as they were");
}

#[tokio::test]
async fn a_parent_is_ready_before_its_child_is_made_and_goes_after_it() {
    check_life(
        &fleet("nested-test"),
        &["create inner-pve", "configure inner-pve", "create test-vm", "configure test-vm"],
        &["destroy test-vm", "destroy inner-pve"],
    )
    .await;
}

#[tokio::test]
async fn three_levels_come_up_from_the_outside_in_and_down_from_the_inside_out() {
    check_life(
        &fleet("deep-test"),
        &[
            "create level-1",
            "configure level-1",
            "create level-2",
            "configure level-2",
            "create level-3",
            "configure level-3",
        ],
        &["destroy level-3", "destroy level-2", "destroy level-1"],
    )
    .await;
}

#[tokio::test]
async fn the_journal_shows_each_end_before_the_start_that_waited_for_it() {
    let driver = Driver::of(&memory());
    driver.create(&fleet("nested-test")).await;
    let told = steps(&driver.entries());
    let expected = [
        "started inner-pve/create",
        "ended inner-pve/create",
        "started inner-pve/configure",
        "ended inner-pve/configure",
        "started test-vm/create",
        "ended test-vm/create",
        "started test-vm/configure",
        "ended test-vm/configure",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn no_effect_reaches_the_provider_when_everything_is_as_wanted() {
    let fleet = fleet("deep-test");
    let (world, host) = faulty(Vec::new());
    let driver = Driver::of(&host);
    driver.create(&fleet).await;
    let before = (host.effects(), world.world());
    for verb in [Verb::Create, Verb::Config] {
        let plan = driver.planned(&fleet, verb).await;
        assert!(plan.is_noop(), "{plan}");
        let report = driver.run(&plan).await;
        assert_eq!(report.exit_code, Some(ExitCode::Done), "{report}");
    }
    assert_eq!((host.effects(), world.world()), before);
}

#[tokio::test]
async fn peers_are_made_at_once() {
    let world = memory();
    let meeting = Arc::new(Barrier::new(3));
    // Nobody leaves before three are inside.
    let host = Around::new(&world, move |effect| {
        let meeting = Arc::clone(&meeting);
        async move {
            if effect.verb == "create" {
                meeting.wait().await;
            }
            Gate::Open
        }
    });
    let report = timeout(EVER, Driver::of(&host).create(&fleet("workers"))).await;
    let report = report.expect("three peers are inside at once");
    assert_eq!(statuses(&report), "worker-1 changed, worker-2 changed, worker-3 changed");
}

#[tokio::test]
async fn no_more_nodes_are_worked_on_at_once_than_the_manifest_allows() {
    let fleet =
        own_fleet("parallelism: 2", "  - { name: n, count: 8, type: vm, preset: small, image: debian-13 }");
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let meeting = Arc::new(Barrier::new(2));
    let counts = (Arc::clone(&inside), Arc::clone(&most));
    // Two must meet, so that the limit is reached; everyone else gets many chances to come in as well.
    let host = Around::new(&memory(), move |_| {
        let (inside, most) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
        let meeting = Arc::clone(&meeting);
        async move {
            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            meeting.wait().await;
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            inside.fetch_sub(1, Ordering::SeqCst);
            Gate::Open
        }
    });
    let report = timeout(EVER, Driver::of(&host).create(&fleet)).await.expect("two are inside at once");
    assert_eq!(report.count(NodeStatus::Changed), 8);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_node_that_another_depends_on_is_ready_before_it_without_being_its_parent() {
    let nodes = "  - { name: late, type: vm, preset: small, image: i, depends_on: [early] }
  - { name: early, type: vm, spec: base, preset: small, image: i }";
    let (host, log) = noting(&memory());
    Driver::of(&host).create(&own_fleet("", nodes)).await;
    assert_eq!(log.take(), ["create early", "configure early", "create late"]);
}

#[tokio::test]
async fn what_was_switched_off_is_started_and_what_is_too_small_grows_and_neither_is_made_anew() {
    let fleet = fleet("nested-test");
    let world = memory();
    let (host, log) = noting(&world);
    let driver = Driver::of(&host);
    driver.create(&fleet).await;
    world.tamper("nested-test-inner-pve", |machine| machine.size.memory -= 512);
    world.tamper("nested-test-test-vm", |machine| machine.state = MachineState::Stopped);
    let made = world.world().made;
    log.take();
    let report = driver.create(&fleet).await;
    assert_eq!(log.take(), ["resize inner-pve", "start test-vm"], "{report}");
    assert_eq!(world.world().made, made);
    assert_as_wanted(&fleet, &world.world().machines);
}

#[tokio::test]
async fn a_half_made_machine_of_an_earlier_run_is_finished_and_configured_and_not_doubled() {
    let fleet = fleet("nested-test");
    let world = memory();
    let (host, log) = noting(&world);
    let driver = Driver::of(&host);
    driver.create(&fleet).await;
    world.tamper("nested-test-test-vm", |machine| {
        machine.state = MachineState::Partial;
        machine.applied = orch_plan::Applied::Never;
    });
    let (made, mark) = (world.world().made, world.world().machines[1].marks.clone());
    log.take();
    let report = driver.create(&fleet).await;
    assert_eq!(log.take(), ["adopt test-vm", "configure test-vm"], "{report}");
    assert_eq!(statuses(&report), "inner-pve unchanged, test-vm changed", "{report}");
    assert_eq!((world.world().made, world.world().machines[1].marks.clone()), (made, mark));
    assert_as_wanted(&fleet, &world.world().machines);
}

#[tokio::test]
async fn a_copied_machine_is_destroyed_together_with_the_one_it_was_copied_from() {
    let fleet = fleet("single-node-push");
    let world = memory();
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    let copy = orch_plan::Machine { id: "copy".into(), ..world.world().machines[0].clone() };
    world.put(copy);
    let report = driver.destroy(&fleet).await;
    assert_eq!(
        (statuses(&report).as_str(), report.exit_code),
        ("test-vm changed", Some(ExitCode::Done)),
        "{report}"
    );
    assert_eq!(report.nodes[0].steps.len(), 2, "{report}");
    assert!(world.world().machines.is_empty());
}

#[tokio::test]
async fn a_plan_that_is_out_of_date_makes_no_second_machine() {
    let fleet = fleet("single-node");
    let world = memory();
    let driver = Driver::of(&world);
    let stale = driver.planned(&fleet, Verb::Create).await;
    driver.create(&fleet).await;
    let before = world.world();
    let report = driver.run(&stale).await;
    assert_eq!(report.exit_code, Some(ExitCode::Failed), "{report}");
    assert_eq!(world.world(), before);
}

#[tokio::test]
async fn another_manifest_with_nodes_of_the_same_names_is_left_alone() {
    let (nested, mixed) = (fleet("nested-test"), fleet("mixed-mode"));
    let world = memory();
    let driver = Driver::of(&world);
    driver.create(&nested).await;
    let before = world.world().machines;
    driver.create(&mixed).await;
    assert_eq!(driver.destroy(&mixed).await.exit_code, Some(ExitCode::Done));
    assert_eq!(with_ids(&world.world().machines, &before), before);
    assert_eq!(ours(&mixed, &world.world().machines).len(), 0);
}

#[tokio::test]
async fn a_parent_that_is_made_anew_takes_its_children_with_it_from_the_inside_out_and_back() {
    let fleet = fleet("nested-test");
    let world = memory();
    let (host, log) = noting(&world);
    let driver = Driver::of(&host);
    driver.create(&fleet).await;
    world.tamper("nested-test-inner-pve", |machine| machine.image = Some("another".into()));
    log.take();
    let goal = Goal { replace: true, ..Goal::of(Verb::Create) };
    let plan = plan(&fleet, &driver.observed().await, &goal).unwrap();
    let report = driver.run(&plan).await;
    let expected = [
        "destroy test-vm",
        "destroy inner-pve",
        "create inner-pve",
        "configure inner-pve",
        "create test-vm",
        "configure test-vm",
    ];
    assert_eq!(log.take(), expected, "{report}");
    assert_eq!(statuses(&report), "inner-pve changed, test-vm changed", "{report}");
    assert_as_wanted(&fleet, &world.world().machines);
}

#[tokio::test]
async fn what_a_manifest_no_longer_describes_is_destroyed_with_it_and_before_what_it_lives_on() {
    let hub = "  - { name: hub, type: pve, spec: pve, preset: small, image: i }";
    let leaf = "  - { name: leaf, type: vm, preset: small, image: i, parent: hub }";
    let world = memory();
    let (host, log) = noting(&world);
    let driver = Driver::of(&host);
    driver.create(&own_fleet("", &format!("{hub}\n{leaf}"))).await;
    log.take();
    let report = driver.destroy(&own_fleet("", hub)).await;
    assert_eq!(log.take(), ["destroy leaf", "destroy hub"], "{report}");
    assert_eq!(
        (statuses(&report).as_str(), report.exit_code),
        ("hub changed, leaf changed", Some(ExitCode::Done))
    );
    assert!(world.world().machines.is_empty());
}
