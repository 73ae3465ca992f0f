//! What others want of a run while it goes on: to pause, to go on, to end.

use std::time::Duration;

use orch_model::Fleet;
use orch_run::{Entry, ExitCode, Report, RunState, Runs, StateDir, Wish};

use crate::batches::nodes;
use crate::common::{Around, Driver, Effect, Gate, host, memory, place, statuses};

/// Carries out a create of three nodes, one after the other, whose first effect is followed by this wish. Gives what the run looked
/// like half a second later, and then does as `then` says.
async fn wished(wish: Wish, then: Option<Wish>, patience: Duration) -> (Driver, Report, Option<Report>) {
    let (world, fleet) = (memory(), fleet());
    let folder = tempfile::tempdir().expect("a folder");
    let state = StateDir::locate(Some(&folder.path().join("state"))).expect("it is given");
    let said = state.clone();
    let asking = Around::new(&world, move |effect: Effect| {
        let state = said.clone();
        async move {
            if (effect.verb, effect.node.as_str()) == ("create", "n-1") {
                ask(&state, wish);
                // As long as it takes until it is heeded: the step that asks is to be the last one.
                while !is_heeded(&state) {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
            Gate::Open
        }
    });
    let mut driver = Driver::with(state.clone(), [(host("father"), place(&asking))].into());
    driver.folder = Some(folder);
    driver.patience.heed = Duration::from_millis(3);
    driver.patience.pause = patience;
    let meanwhile = async {
        let then = then?;
        tokio::time::sleep(Duration::from_millis(400)).await;
        let half_way = newest(&state);
        ask(&state, then);
        Some(half_way)
    };
    let (report, half_way) = tokio::join!(driver.create(&fleet), meanwhile);
    (driver, report, half_way)
}

fn fleet() -> Fleet {
    nodes(3, "parallelism: 1")
}

fn newest(state: &StateDir) -> Report {
    let mut runs = Runs::of(state.clone()).newest(1).expect("they can be listed");
    runs.remove(0).report.expect("it can be read")
}

fn ask(state: &StateDir, wish: Wish) {
    let run = newest(state).run;
    Runs::of(state.clone()).wish(&run, wish).expect("it runs");
}

fn is_heeded(state: &StateDir) -> bool {
    let report = newest(state);
    report.paused.is_some() || report.aborted.is_some()
}

#[tokio::test]
async fn a_paused_run_begins_nothing_says_who_asked_and_goes_on_when_told() {
    let (driver, report, half_way) = wished(Wish::Pause, Some(Wish::Resume), Duration::from_mins(1)).await;
    let half_way = half_way.expect("it was looked at");
    assert_eq!(half_way.state, RunState::Running);
    let paused = half_way.paused.clone().expect("it is paused");
    assert!(paused.by.contains("process"), "{}", paused.by);
    assert!(half_way.to_string().contains("paused by "), "{half_way}");
    let begun = half_way.nodes.iter().flat_map(|node| &node.steps).count();
    assert_eq!(begun, 1, "the step that ran came to its end, and nothing else was begun: {half_way}");
    assert_eq!((report.exit_code, report.paused.clone()), (Some(ExitCode::Done), None), "{report}");
    assert_eq!(statuses(&report), "n-1 changed, n-2 changed, n-3 changed");
    let entries = driver.entries();
    assert!(entries.iter().any(|entry| matches!(entry, Entry::Resumed { .. })));
}

#[tokio::test]
async fn an_abort_lets_running_steps_end_and_is_told_with_whose_wish_it_was() {
    let (_, report, _) = wished(Wish::Abort, None, Duration::from_mins(1)).await;
    assert!(report.interrupted && report.aborted.as_ref().is_some_and(|why| why.ends_with("asked for it")));
    assert_eq!(statuses(&report), "n-1 skipped, n-2 skipped, n-3 skipped", "{report}");
    assert_eq!(
        report.nodes[0].steps.len(),
        1 + 1,
        "the first step ended, the second was not begun: {report}"
    );
    assert!(report.to_string().contains("ended early: "), "{report}");
}

#[tokio::test]
async fn a_paused_run_can_be_aborted() {
    let (_, report, _) = wished(Wish::Pause, Some(Wish::Abort), Duration::from_mins(1)).await;
    assert_eq!(report.exit_code, Some(ExitCode::Failed), "{report}");
    assert!(report.aborted.is_some());
}

#[tokio::test]
async fn a_run_that_nobody_has_go_on_ends_when_its_pause_has_lasted_long_enough() {
    let (_, report, _) = wished(Wish::Pause, None, Duration::from_millis(200)).await;
    assert!(report.aborted.as_ref().is_some_and(|why| why.contains("nobody had it go on")), "{report}");
    assert_ne!(report.exit_code, Some(ExitCode::Done));
}

#[tokio::test]
async fn odd_contents_are_no_wish_and_nothing_stays_behind() {
    let (world, fleet) = (memory(), fleet());
    let folder = tempfile::tempdir().expect("a folder");
    let state = StateDir::locate(Some(&folder.path().join("state"))).expect("it is given");
    let said = state.clone();
    let scribbling = Around::new(&world, move |_: Effect| {
        let run = newest(&said).run;
        std::fs::write(said.runs().join(format!("{run}.wish")), b"{\"wish\":\"explode\"")
            .expect("it can be written");
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Gate::Open
        }
    });
    let mut driver = Driver::with(state.clone(), [(host("father"), place(&scribbling))].into());
    driver.patience.heed = Duration::from_millis(3);
    let report = driver.create(&fleet).await;
    assert_eq!(report.exit_code, Some(ExitCode::Done), "{report}");
    let left = std::fs::read_dir(state.runs()).expect("it is there").count();
    assert_eq!(left, 1, "only the journal");
}
