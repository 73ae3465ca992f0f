//! Nodes are a run's alone: all of them or none, as long as the run lasts, and whoever comes second is told who was first.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::system::{LeaseAnswer, LeaseClaim};
use orch_plan::{Goal, Staging, Verb, plan};
use orch_run::memory::MemoryProvider;
use orch_run::status::minding_drift;
use orch_run::{
    Door, Doors, Entry, ExitCode, HostLocks, Leaser, NodeStatus, Permit, Progress, RunId, Target,
    TransportError,
};

use crate::batches::{Ward, at, in_order, nixos, nodes, planned, running, settled, system};
use crate::common::{Around, Driver, Effect, Gate, host, statuses, why};

fn uuid_of(world: &MemoryProvider, place: usize) -> uuid::Uuid {
    in_order(world)[place].marks.as_ref().expect("it is ours").uuid
}

fn driver_of(world: &Arc<MemoryProvider>) -> Driver {
    Driver::on([(host("father"), nixos(world, world))].into())
}

/// Somebody else takes a node.
async fn taken_by_another(world: &Arc<MemoryProvider>, place: usize) {
    let machine = in_order(world)[place].clone();
    let marks = machine.marks.expect("it is ours");
    let other = driver_of(world);
    let hosts = [host("father")].into();
    let locks =
        HostLocks::take(&other.state, &marks.site, &hosts, &RunId::new(), "a test").expect("it is free");
    let target = Target {
        identity: marks.identity(),
        uuid: marks.uuid,
        mode: orch_model::Mode::Push,
        progress: Progress::to_nobody(),
    };
    let claim = LeaseClaim { holder: "bob on desk, process 7".into(), run: "theirs".into(), seconds: 60 };
    let answer = world.lease(&target, &claim, &Permit::under(locks)).await.expect("it answers");
    assert!(answer.granted);
}

#[tokio::test]
async fn a_node_that_another_has_fails_the_run_before_anything_is_touched() {
    let fleet = nodes(4, "on_error: continue");
    for place in 0..4 {
        let world = settled(&fleet).await;
        taken_by_another(&world, place).await;
        let driver = driver_of(&world);
        let plan = planned(&driver, &at(&fleet, 'b'), Staging::ALL).await;
        let report = driver.run(&plan).await;
        assert_eq!(running(&world), "aaaa", "{report}");
        assert_eq!(report.exit_code, Some(ExitCode::Failed));
        assert_eq!((report.count(NodeStatus::Failed), report.count(NodeStatus::Skipped)), (1, 3), "{report}");
        let said = why(&report, &format!("n-{}", place + 1));
        assert!(said.starts_with("`bob on desk, process 7` has had it since 20"), "{said}");
        for other in (0..4).filter(|other| *other != place) {
            assert!(!world.is_leased(uuid_of(&world, other)), "what was granted is given back");
        }
    }
}

#[tokio::test]
async fn leases_are_held_while_the_run_lasts_and_given_back_at_its_end() {
    let fleet = nodes(3, "parallelism: 1");
    let world = settled(&fleet).await;
    let seen = Arc::clone(&world);
    let watched = Around::new(&world, move |_: Effect| {
        let all = (0..3).all(|place| seen.is_leased(uuid_of(&seen, place)));
        async move { if all { Gate::Open } else { Gate::Refused } }
    });
    let driver = Driver::on([(host("father"), nixos(&watched, &world))].into());
    let report = driver.run(&planned(&driver, &at(&fleet, 'b'), Staging::ALL).await).await;
    assert_eq!((running(&world).as_str(), report.exit_code), ("bbb", Some(ExitCode::Done)), "{report}");
    assert!((0..3).all(|place| !world.is_leased(uuid_of(&world, place))));
    let entries = driver.entries();
    let leased = entries.iter().position(|entry| matches!(entry, Entry::Leased { .. })).expect("it is told");
    let step = entries.iter().position(|entry| matches!(entry, Entry::Step { .. })).expect("there are steps");
    assert!(leased < step, "before the first step");
    assert!(entries.iter().any(|entry| matches!(entry, Entry::Released { untold, .. } if untold.is_empty())));
}

#[tokio::test]
async fn they_are_given_back_after_a_failure_too() {
    let fleet = nodes(2, "");
    let world = settled(&fleet).await;
    let refusing = Around::new(&world, |_: Effect| async { Gate::Refused });
    let driver = Driver::on([(host("father"), nixos(&refusing, &world))].into());
    let report = driver.run(&planned(&driver, &at(&fleet, 'b'), Staging::ALL).await).await;
    assert_eq!(report.exit_code, Some(ExitCode::Failed));
    assert!((0..2).all(|place| !world.is_leased(uuid_of(&world, place))));
}

#[tokio::test]
async fn a_run_with_nothing_to_do_takes_none() {
    let fleet = nodes(2, "");
    let world = settled(&fleet).await;
    taken_by_another(&world, 0).await;
    let driver = driver_of(&world);
    let report = driver.run(&planned(&driver, &at(&fleet, 'a'), Staging::ALL).await).await;
    assert_eq!(
        (statuses(&report).as_str(), report.exit_code),
        ("n-1 unchanged, n-2 unchanged", Some(ExitCode::Done))
    );
    assert!(!driver.entries().iter().any(|entry| matches!(entry, Entry::Leased { .. })));
}

#[tokio::test]
async fn a_node_that_was_moved_since_the_plan_fails_the_run_before_anything_is_touched() {
    let fleet = nodes(3, "on_error: continue");
    let world = settled(&fleet).await;
    world.tamper("m-n-1", |machine| machine.applied = orch_plan::Applied::Never);
    let driver = driver_of(&world);
    let plan = planned(&driver, &at(&fleet, 'a'), Staging::ALL).await;
    world.put_system(uuid_of(&world, 2), system('c'));
    let report = driver.run(&plan).await;
    assert_eq!(statuses(&report), "n-1 skipped, n-2 skipped, n-3 failed", "{report}");
    assert!(
        why(&report, "n-3").contains("changed meanwhile") && why(&report, "n-3").ends_with("run again"),
        "{report}"
    );
}

#[tokio::test]
async fn a_node_that_was_moved_before_the_plan_is_brought_back_by_the_run() {
    for verb in [Verb::Create, Verb::Config] {
        let fleet = nodes(3, "");
        let world = settled(&fleet).await;
        world.tamper("m-n-1", |machine| machine.applied = orch_plan::Applied::Never);
        world.put_system(uuid_of(&world, 2), system('c'));
        let (driver, fleet, goal) = (driver_of(&world), at(&fleet, 'a'), Goal::of(verb));
        let door: Arc<dyn Door> = Arc::new(Ward::of(&world, &[]));
        let (doors, patience) = (Doors::from([(host("father"), door)]), Duration::from_secs(5));
        let minded = minding_drift(&fleet, &goal, &driver.observed().await, &doors, patience).await;
        let plan = plan(&fleet, &minded.expect("all are picked"), &goal).expect("everything is selected");
        let report = driver.run(&plan).await;
        assert_eq!((running(&world).as_str(), report.exit_code), ("aaa", Some(ExitCode::Done)), "{report}");
        assert!(statuses(&report).ends_with("n-2 unchanged, n-3 changed"), "{report}");
    }
}

#[tokio::test]
async fn a_lease_is_renewed_for_as_long_as_the_run_takes() {
    let fleet = nodes(1, "");
    let world =
        Arc::new(MemoryProvider::new(host("father")).keyless().leasing_for(Duration::from_millis(300)));
    let driver = driver_of(&world);
    driver.create(&at(&fleet, 'a')).await;
    let seen = Arc::clone(&world);
    let slow = Around::new(&world, move |_: Effect| {
        let seen = Arc::clone(&seen);
        async move {
            tokio::time::sleep(Duration::from_millis(900)).await;
            if seen.is_leased(uuid_of(&seen, 0)) { Gate::Open } else { Gate::Refused }
        }
    });
    let mut driver = Driver::on([(host("father"), nixos(&slow, &world))].into());
    driver.patience.lease = Duration::from_millis(300);
    let report = driver.run(&planned(&driver, &at(&fleet, 'b'), Staging::ALL).await).await;
    assert_eq!((running(&world).as_str(), report.exit_code), ("b", Some(ExitCode::Done)), "{report}");
}

#[tokio::test]
async fn a_run_that_lost_a_node_to_another_begins_nothing_on_it_any_more() {
    let fleet = nodes(2, "parallelism: 1");
    let world = settled(&fleet).await;
    let seen = Arc::clone(&world);
    let held_up = Around::new(&world, move |effect: Effect| {
        let seen = Arc::clone(&seen);
        async move {
            if effect.node == "n-1" {
                // As if this computer had slept: nobody asked for the node again, and another run came by.
                let claim = seen.lease_of(uuid_of(&seen, 1)).expect("it is leased");
                seen.forget_lease(uuid_of(&seen, 1), &claim);
                taken_by_another(&seen, 1).await;
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
            Gate::Open
        }
    });
    let mut driver = Driver::on([(host("father"), nixos(&held_up, &world))].into());
    driver.patience.lease = Duration::from_millis(120);
    let report = driver.run(&planned(&driver, &at(&fleet, 'b'), Staging::ALL).await).await;
    assert_eq!(running(&world), "ba", "{report}");
    assert!(why(&report, "n-2").contains("`bob on desk, process 7` has had it"), "{report}");
}

#[tokio::test]
async fn a_lease_that_is_lost_while_a_step_is_under_way_keeps_it_from_moving_the_node() {
    // Without a wait nobody noticed yet, and the node itself refuses; after one, the run has it again and knows better.
    for (wait, said) in [(0, "it is not this run's any more"), (150, "this run lost it for a while")] {
        let fleet = nodes(1, "");
        let world = settled(&fleet).await;
        let seen = Arc::clone(&world);
        let held_up = Around::new(&world, move |_: Effect| {
            let seen = Arc::clone(&seen);
            async move {
                let node = uuid_of(&seen, 0);
                let claim = seen.lease_of(node).expect("it is leased");
                seen.forget_lease(node, &claim);
                seen.put_system(node, system('c'));
                tokio::time::sleep(Duration::from_millis(wait)).await;
                Gate::Open
            }
        });
        let mut driver = Driver::on([(host("father"), nixos(&held_up, &world))].into());
        driver.patience.lease = if wait == 0 { Duration::from_mins(1) } else { Duration::from_millis(120) };
        let report = driver.run(&planned(&driver, &at(&fleet, 'b'), Staging::ALL).await).await;
        assert_eq!(running(&world), "c", "{report}");
        assert!(why(&report, "n").contains(said), "{report}");
    }
}

/// Whoever asks these nodes gets no answer.
struct Deaf {
    world: Arc<MemoryProvider>,
    nodes: &'static [&'static str],
}

#[async_trait]
impl Leaser for Deaf {
    async fn lease(
        &self,
        target: &Target,
        claim: &LeaseClaim,
        permit: &Permit,
    ) -> Result<LeaseAnswer, TransportError> {
        if self.nodes.contains(&target.identity.node.as_str()) {
            let (node, why) = (target.identity.clone(), "no route".to_owned());
            return Err(TransportError::Unreachable { node, why, evidence: Vec::new() });
        }
        self.world.lease(target, claim, permit).await
    }

    async fn release(&self, target: &Target, claim: &str) -> Result<(), TransportError> {
        self.world.release(target, claim).await
    }
}

#[tokio::test]
async fn nodes_that_cannot_be_asked_fail_alone_only_where_the_run_goes_on_after_failures() {
    let cases: [(&[&str], &str, &str); 5] = [
        (&["n-1"], "on_error: continue", "abb"),
        (&["n-2"], "on_error: continue", "bab"),
        (&["n-1", "n-2"], "on_error: continue", "aab"),
        (&["n-1"], "on_error: stop", "aaa"),
        (&["n-3"], "on_error: stop", "aaa"),
    ];
    for (deaf, settings, ends) in cases {
        let fleet = nodes(3, settings);
        let world = settled(&fleet).await;
        let seen = Arc::clone(&world);
        let watched = Around::new(&world, move |_: Effect| {
            let asked = (0..3).filter(|place| !deaf.contains(&format!("n-{}", place + 1).as_str()));
            let others = asked.map(|place| uuid_of(&seen, place)).all(|node| seen.is_leased(node));
            async move { if others { Gate::Open } else { Gate::Refused } }
        });
        let leaser = Arc::new(Deaf { world: Arc::clone(&world), nodes: deaf });
        let place = orch_run::Place { leaser: Some(leaser), ..nixos(&watched, &world) };
        let driver = Driver::on([(host("father"), place)].into());
        let report = driver.run(&planned(&driver, &at(&fleet, 'b'), Staging::ALL).await).await;
        assert_eq!(running(&world), ends, "{settings}: {report}");
        assert!(deaf.iter().all(|node| why(&report, node).contains("no route")), "{report}");
        assert!((0..3).all(|place| !world.is_leased(uuid_of(&world, place))), "all are given back");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_drivers_with_two_revisions_never_leave_a_mixed_fleet() {
    let fleet = nodes(8, "");
    let mut winners = std::collections::BTreeSet::new();
    for number in 0..100 {
        let world = settled(&fleet).await;
        let one = |revision: char, wait: u64| {
            let (world, fleet) = (Arc::clone(&world), at(&fleet, revision));
            async move {
                tokio::time::sleep(Duration::from_micros(wait)).await;
                let driver = driver_of(&world);
                driver.run(&planned(&driver, &fleet, Staging::ALL).await).await
            }
        };
        let (b, c) = tokio::join!(
            tokio::spawn(one('b', number * 37 % 500)),
            tokio::spawn(one('c', number * 91 % 500))
        );
        let (b, c) = (b.expect("it ends"), c.expect("it ends"));
        let ends = running(&world);
        assert!(["bbbbbbbb", "cccccccc"].contains(&ends.as_str()), "try {number}: {ends}\n{b}\n{c}");
        for (report, revision) in [(&b, 'b'), (&c, 'c')] {
            let done = report.exit_code == Some(ExitCode::Done);
            assert!(done || report.count(NodeStatus::Changed) == 0, "all or nothing: {report}");
            winners.extend((done && ends.starts_with(revision)).then_some(revision));
        }
        assert!(b.exit_code == Some(ExitCode::Done) || c.exit_code == Some(ExitCode::Done), "{b}\n{c}");
    }
    assert!(!winners.is_empty());
}
