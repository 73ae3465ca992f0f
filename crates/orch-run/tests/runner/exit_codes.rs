//! What a failure means for the others, and the exit code that sums it up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orch_model::Fleet;
use orch_plan::Verb;
use orch_run::memory::{Fault, FaultKind, Faulty};
use tokio::sync::Barrier;

use crate::common::{Around, Driver, Gate, exit_code, faulty, host, memory, own_fleet, statuses, why};

/// `c` waits for `a`; `b` stands alone. One at a time, in the order of the file.
const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i }
  - { name: c, type: vm, spec: base, preset: small, image: i, depends_on: [a] }";

fn manifest(on_error: &str) -> Fleet {
    own_fleet(&format!("on_error: {on_error}, parallelism: 1"), NODES)
}

/// Longer than any phase may take: nothing has happened when the time is up.
const LATE: FaultKind = FaultKind::Slow(Duration::from_hours(24));

fn faults(text: &str) -> Vec<Fault> {
    let fault = |word: &str| {
        let (node, kind) = word.split_once(' ').expect("a node and what is wrong with it");
        let kind = match kind {
            "refused" => FaultKind::Refuse,
            "late" => LATE,
            "silent" => FaultKind::FailBefore,
            other => unreachable!("{other}"),
        };
        Fault::node(node.parse().expect("a node has a name"), kind)
    };
    text.split(", ").filter(|word| !word.is_empty()).map(fault).collect()
}

/// Creates with these faults and sums up: `a changed, b failed, c skipped: 2`.
async fn check_create(on_error: &str, wrong: &str, expected: &str) {
    let (_, host) = faulty(faults(wrong));
    let report = Driver::of(&host).create(&manifest(on_error)).await;
    let told = format!("{}: {}", statuses(&report), exit_code(&report));
    assert_eq!(told, expected, "on_error {on_error}, {wrong}\n{report}");
}

#[tokio::test(start_paused = true)]
async fn every_way_to_fail_has_its_statuses_and_its_exit_code() {
    let table = [
        ("stop", "", "a changed, b changed, c changed: 0"),
        ("stop", "a refused", "a failed, b skipped, c skipped: 1"),
        ("stop", "b refused", "a changed, b failed, c skipped: 2"),
        ("stop", "c refused", "a changed, b changed, c failed: 2"),
        ("stop", "a silent", "a failed, b skipped, c skipped: 1"),
        ("stop", "a late", "a failed, b skipped, c skipped: 4"),
        ("stop", "b late", "a changed, b failed, c skipped: 2"),
        ("continue", "", "a changed, b changed, c changed: 0"),
        ("continue", "a refused", "a failed, b changed, c skipped: 2"),
        ("continue", "b refused", "a changed, b failed, c changed: 2"),
        ("continue", "a refused, b refused", "a failed, b failed, c skipped: 1"),
        ("continue", "a late, b late", "a failed, b failed, c skipped: 4"),
        ("continue", "a late, b refused", "a failed, b failed, c skipped: 1"),
        ("continue", "a late", "a failed, b changed, c skipped: 2"),
        ("rollback", "", "a changed, b changed, c changed: 0"),
        ("rollback", "a refused", "a failed, b skipped, c skipped: 1"),
        ("rollback", "b refused", "a skipped, b failed, c skipped: 1"),
        ("rollback", "c refused", "a skipped, b skipped, c failed: 1"),
        // A completed rollback is 1, whatever its cause was.
        ("rollback", "b late", "a skipped, b failed, c skipped: 1"),
    ];
    for (on_error, wrong, expected) in table {
        check_create(on_error, wrong, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_destroy_that_fails_never_says_done_and_one_that_is_repeated_does() {
    for (on_error, wrong, expected) in [
        ("stop", "c refused", "a skipped, b skipped, c failed: 1"),
        ("stop", "a refused", "a failed, b changed, c changed: 2"),
        ("continue", "c refused", "a skipped, b changed, c failed: 2"),
        ("rollback", "a refused", "a failed, b changed, c changed: 2"),
        ("stop", "c late", "a skipped, b skipped, c failed: 4"),
    ] {
        let (world, healthy) = faulty(Vec::new());
        let fleet = manifest(on_error);
        let driver = Driver::of(&healthy);
        driver.create(&fleet).await;
        let broken = Faulty::new(Arc::clone(&world), host("father"), faults(wrong));
        let report = driver.now_of(&Arc::new(broken)).destroy(&fleet).await;
        let told = format!("{}: {}", statuses(&report), exit_code(&report));
        assert_eq!(told, expected, "on_error {on_error}, {wrong}\n{report}");
        let healed = driver.destroy(&fleet).await;
        assert_eq!((exit_code(&healed), world.world().machines.len()), (0, 0), "{healed}");
    }
}

#[tokio::test]
async fn a_failure_names_its_cause_and_what_to_try_and_a_skipped_node_names_the_culprit() {
    let (_, host) = faulty(faults("a refused"));
    let report = Driver::of(&host).create(&manifest("continue")).await;
    let [a, b, c] = &report.nodes[..] else { unreachable!("three nodes") };
    assert_eq!(a.why, ["`father` refused: injected"]);
    assert!(a.hint.as_ref().is_some_and(|hint| hint.contains("run again")), "{report}");
    assert_eq!((b.hint.as_ref(), c.hint.as_ref()), (None, None));
    assert_eq!(c.why, ["`a` failed"]);
    let (_, host) = faulty(faults("a refused"));
    let report = Driver::of(&host).create(&manifest("stop")).await;
    assert_eq!(report.nodes[1].why, ["the run stopped when `a` failed"]);
}

#[tokio::test]
async fn a_failed_configuration_leaves_the_machine_and_the_next_config_mends_it() {
    let fleet = manifest("stop");
    let (world, host) = faulty(vec![Fault::nth(2, FaultKind::Refuse)]);
    let driver = Driver::of(&host);
    let report = driver.create(&fleet).await;
    assert_eq!(statuses(&report), "a failed, b skipped, c skipped");
    assert!(report.nodes[0].hint.as_ref().is_some_and(|hint| hint.contains("spec")), "{report}");
    assert_eq!(world.world().machines.len(), 1);
    let plan = driver.planned(&fleet, Verb::Config).await;
    let report = driver.run(&plan).await;
    // The other two do not exist, which `config` cannot mend: with `stop` nothing is begun.
    assert_eq!(statuses(&report), "a skipped, b failed, c failed", "{report}");
    let report = driver.create(&fleet).await;
    assert_eq!((statuses(&report).as_str(), world.world().made), ("a changed, b changed, c changed", 3));
}

#[tokio::test]
async fn a_provider_that_panics_is_a_failed_node_and_the_report_is_complete() {
    let world = memory();
    let host = Around::new(&world, |effect| async move {
        assert!(effect.node != "a", "a bug in a provider");
        Gate::Open
    });
    let report = Driver::of(&host).create(&manifest("continue")).await;
    assert_eq!(statuses(&report), "a failed, b changed, c skipped", "{report}");
    assert!(why(&report, "a").contains("a bug in a provider"), "{report}");
}

#[tokio::test]
async fn with_stop_what_is_running_comes_to_its_end_and_counts() {
    let nodes = "  - { name: a, type: vm, preset: small, image: i }
  - { name: b, type: vm, preset: small, image: i }
  - { name: c, type: vm, preset: small, image: i }";
    let world = memory();
    let (inside, refused) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let host = Around::new(&world, move |effect| {
        let (inside, refused) = (Arc::clone(&inside), Arc::clone(&refused));
        async move {
            inside.wait().await;
            if effect.node == "a" {
                refused.store(true, Ordering::SeqCst);
                return Gate::Refused;
            }
            while !refused.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            // Long enough for the run to notice that it is to stop.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            Gate::Open
        }
    });
    let report = Driver::of(&host).create(&own_fleet("on_error: stop, parallelism: 2", nodes)).await;
    let told = (statuses(&report), exit_code(&report), world.world().made);
    assert_eq!(told, ("a failed, b changed, c skipped".to_owned(), 2, 1), "{report}");
}
