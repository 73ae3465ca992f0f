//! Ctrl-C: the first lets running steps end, the second cuts them off. Both leave a report and a journal that are
//! complete, and running again heals.

use std::sync::Arc;
use std::time::Duration;

use orch_dag::Control;
use orch_model::Fleet;
use orch_run::memory::MemoryProvider;
use orch_run::{Entry, ExitCode, Report};

use crate::common::{Around, Driver, Effect, Gate, assert_as_wanted, memory, own_fleet, statuses, why};

const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i }";

fn two(settings: &str) -> Fleet {
    own_fleet(&format!("parallelism: 1{settings}"), NODES)
}

/// What somebody at the keyboard does.
#[derive(Clone, Copy)]
enum Keys {
    /// Once.
    Stop,
    /// Twice, while the step hangs.
    Cancel,
}

/// Creates, with keys pressed at this effect of this node. The driver's next run is not interrupted.
async fn interrupted(
    world: &Arc<MemoryProvider>,
    fleet: &Fleet,
    at: (&'static str, &'static str),
    keys: Keys,
) -> (Driver, Report) {
    let control = Control::new();
    let pressed = control.clone();
    let host = Around::new(world, move |effect: Effect| {
        let pressed = pressed.clone();
        async move {
            if (effect.verb, effect.node.as_str()) == at {
                pressed.stop();
                if let Keys::Cancel = keys {
                    pressed.cancel();
                    std::future::pending::<()>().await;
                }
            }
            Gate::Open
        }
    });
    let driver = Driver { control, ..Driver::of(&host) };
    let report = driver.create(fleet).await;
    (driver, report)
}

fn interruptions(driver: &Driver) -> Vec<bool> {
    let entries = driver.entries();
    assert!(matches!(entries.last(), Some(Entry::Finished { .. })), "the journal is closed");
    let told = entries.iter().filter_map(|entry| match entry {
        Entry::Interrupted { cancelled, .. } => Some(*cancelled),
        _ => None,
    });
    told.collect()
}

#[tokio::test]
async fn the_first_one_lets_the_running_step_end_and_starts_nothing_new() {
    let (world, fleet) = (memory(), two(""));
    let (driver, report) = interrupted(&world, &fleet, ("create", "a"), Keys::Stop).await;
    assert_eq!(statuses(&report), "a skipped, b skipped", "a was made and not configured: {report}");
    assert_eq!(world.world().machines.len(), 1, "the running step came to its end");
    assert_eq!(why(&report, "b"), "the run was stopped");
    assert_eq!((report.interrupted, report.exit_code), (true, Some(ExitCode::Failed)), "{report}");
    assert_eq!(interruptions(&driver), [false]);
    let healed = driver.now_of(&world).create(&fleet).await;
    assert_eq!((statuses(&healed).as_str(), world.world().made), ("a changed, b changed", 2));
    assert_as_wanted(&fleet, &world.world().machines);
}

#[tokio::test]
async fn the_second_one_cuts_the_running_step_off() {
    let (world, fleet) = (memory(), two(""));
    let (driver, report) = interrupted(&world, &fleet, ("configure", "a"), Keys::Cancel).await;
    assert_eq!(statuses(&report), "a failed, b skipped", "{report}");
    assert!(why(&report, "a").starts_with("cut off; run again"), "{report}");
    assert_eq!(why(&report, "b"), "the run was cancelled");
    assert_eq!((report.interrupted, report.exit_code), (true, Some(ExitCode::Failed)), "{report}");
    assert_eq!(interruptions(&driver), [true]);
    driver.now_of(&world).create(&fleet).await;
    assert_as_wanted(&fleet, &world.world().machines);
}

#[tokio::test]
async fn what_was_done_before_counts_and_the_rest_is_partly() {
    let (world, fleet) = (memory(), two(""));
    for keys in [Keys::Stop, Keys::Cancel] {
        let (driver, report) = interrupted(&world, &fleet, ("create", "b"), keys).await;
        assert_eq!((report.interrupted, report.exit_code), (true, Some(ExitCode::Partly)), "{report}");
        driver.now_of(&world).destroy(&fleet).await;
    }
}

#[tokio::test]
async fn an_interrupt_before_the_beginning_starts_nothing_and_reports_every_node() {
    let (world, fleet) = (memory(), two(""));
    for stop in [Control::stop, Control::cancel] {
        let driver = Driver::of(&world);
        stop(&driver.control);
        let report = driver.create(&fleet).await;
        assert_eq!((statuses(&report).as_str(), world.world().made), ("a skipped, b skipped", 0));
        assert_eq!((report.interrupted, report.exit_code), (true, Some(ExitCode::Failed)), "{report}");
    }
}

#[tokio::test]
async fn an_interrupt_after_the_last_step_began_is_no_interrupt() {
    let (world, fleet) = (memory(), two(""));
    let (driver, report) = interrupted(&world, &fleet, ("configure", "b"), Keys::Stop).await;
    assert_eq!(
        (statuses(&report).as_str(), report.exit_code),
        ("a changed, b changed", Some(ExitCode::Done))
    );
    assert_eq!((report.interrupted, interruptions(&driver).len()), (false, 0), "{report}");
}

#[tokio::test]
async fn an_interrupt_is_no_failure_so_nothing_is_taken_down_for_it() {
    for keys in [Keys::Stop, Keys::Cancel] {
        let (world, fleet) = (memory(), two(", on_error: rollback"));
        let (driver, report) = interrupted(&world, &fleet, ("create", "b"), keys).await;
        assert!(!report.rolled_back, "{report}");
        assert_eq!(statuses(&report).split(',').next(), Some("a changed"), "{report}");
        driver.now_of(&world).create(&fleet).await;
        assert_eq!(world.world().made, 2);
        assert_as_wanted(&fleet, &world.world().machines);
    }
}

#[tokio::test]
async fn an_interrupt_ends_the_wait_for_another_try() {
    let (world, fleet) = (memory(), two(""));
    let control = Control::new();
    let pressed = control.clone();
    let host = Around::new(&world, move |_| {
        pressed.stop();
        async { Gate::NoAnswer }
    });
    let mut driver = Driver { control, ..Driver::of(&host).retrying(9) };
    driver.patience.first_wait = Duration::from_hours(1);
    driver.patience.longest_wait = driver.patience.first_wait;
    let report = tokio::time::timeout(Duration::from_secs(30), driver.create(&fleet)).await;
    let report = report.expect("nobody waits an hour for the next try");
    assert_eq!(statuses(&report), "a failed, b skipped", "{report}");
    assert!(report.interrupted, "{report}");
}
