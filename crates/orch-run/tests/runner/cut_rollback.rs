//! Ctrl-C and a rollback: the first does not keep it from beginning, the second cuts it off, and what is left is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch_dag::{Control, TaskReport};
use orch_model::Fleet;
use orch_run::memory::MemoryProvider;
use orch_run::{Entry, ExitCode, Hooks, Report, StepValue};
use tokio::time::Instant;

use crate::common::{Around, Driver, Effect, Gate, assert_as_wanted, memory, ours, own_fleet, statuses, why};

fn tree() -> Fleet {
    let nodes = "  - { name: hub, type: pve, spec: pve, preset: small, image: i }
  - { name: leaf, type: vm, spec: base, preset: small, image: i, parent: hub }
  - { name: last, type: vm, spec: base, preset: small, image: i, depends_on: [leaf] }";
    own_fleet("on_error: rollback, parallelism: 1, timeouts: { destroy: 1h }", nodes)
}

/// When somebody presses which keys, while `last` cannot be made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Once, while the step runs that fails.
    StopBefore,
    /// Twice, while the step runs that fails: it is cut off before it can say why.
    CancelBefore,
    /// Twice, when the step has failed.
    CancelAfter,
    /// Once and, a minute later, once more, while a machine is being taken down and nothing is heard of it.
    CancelDuring,
}

async fn interrupted(world: &Arc<MemoryProvider>, keys: Keys) -> (Driver, Report) {
    let control = Control::new();
    let pressed = control.clone();
    let host = Around::new(world, move |effect: Effect| {
        let pressed = pressed.clone();
        async move {
            match (effect.verb, keys) {
                ("create", Keys::StopBefore) if effect.node == "last" => pressed.stop(),
                ("create", Keys::CancelBefore) if effect.node == "last" => pressed.cancel(),
                ("destroy", Keys::CancelDuring) => {
                    pressed.stop();
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_mins(1)).await;
                        pressed.cancel();
                    });
                    std::future::pending::<()>().await;
                }
                _ => {}
            }
            if effect.verb == "create" && effect.node == "last" { Gate::Refused } else { Gate::Open }
        }
    });
    let hooks = Arc::new(Cancelling((keys == Keys::CancelAfter).then(|| control.clone())));
    let driver = Driver { control, hooks, ..Driver::of(&host).retrying(3) };
    let report = driver.create(&tree()).await;
    (driver, report)
}

/// Cancels as soon as a step has failed, if there is something to cancel with.
struct Cancelling(Option<Control>);

impl Hooks<StepValue> for Cancelling {
    fn after_task(&self, report: &TaskReport<StepValue>) {
        if let Some(control) = self.0.as_ref().filter(|_| report.status.is_failed()) {
            control.cancel();
        }
    }
}

fn is_told_as_cut_off(driver: &Driver) -> bool {
    let entries = driver.entries();
    assert!(matches!(entries.last(), Some(Entry::Finished { .. })), "the journal is closed");
    entries.iter().any(|entry| matches!(entry, Entry::Interrupted { cancelled: true, .. }))
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_rollback_at_once_and_the_report_is_complete() {
    let (world, began) = (memory(), Instant::now());
    let (driver, report) = interrupted(&world, Keys::CancelDuring).await;
    assert_eq!(began.elapsed().as_secs(), 60, "nobody waits for the answer");
    assert_eq!(statuses(&report), "hub failed, leaf failed, last failed", "{report}");
    let cut = "could not be taken down again: the run ended while it was being taken down";
    assert!(why(&report, "leaf").contains(cut), "{report}");
    let untried = "could not be taken down again: the run was cut off before that";
    assert!(why(&report, "hub").contains(untried), "{report}");
    assert!(why(&report, "last").ends_with("rolled back"), "it was never there: {report}");
    assert_eq!((report.interrupted, report.rolled_back), (true, false), "{report}");
    assert_eq!(report.exit_code, Some(ExitCode::Failed), "{report}");
    assert!(is_told_as_cut_off(&driver));
    driver.now_of(&world).create(&tree()).await;
    assert_eq!(world.world().made, 3, "running again goes on from what is there");
    assert_as_wanted(&tree(), &world.world().machines);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_killed_while_it_takes_a_machine_down_tells_the_same() {
    let world = memory();
    let (driver, _) = interrupted(&world, Keys::CancelDuring).await;
    let entries = driver.entries();
    let is_leaf =
        |entry: &Entry| matches!(entry, Entry::RollingBack { node, .. } if node.node.as_str() == "leaf");
    let until = entries.iter().position(is_leaf).expect("it was begun") + 1;
    let report = Report::of(&entries[..until]).expect("it begins with its plan");
    assert!(why(&report, "leaf").ends_with("the run ended while it was being taken down"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_keep_a_rollback_from_beginning_nor_cut_it_off() {
    let world = memory();
    let (driver, report) = interrupted(&world, Keys::StopBefore).await;
    assert!(world.world().machines.is_empty(), "{report}");
    assert_eq!((report.rolled_back, report.exit_code), (true, Some(ExitCode::Failed)), "{report}");
    assert!(!is_told_as_cut_off(&driver));
}

#[tokio::test(start_paused = true)]
async fn after_a_cancel_nothing_is_taken_down_and_what_was_made_is_told() {
    let world = memory();
    let (driver, report) = interrupted(&world, Keys::CancelAfter).await;
    assert_eq!(ours(&tree(), &world.world().machines).len(), 2, "{report}");
    assert_eq!(statuses(&report), "hub failed, leaf failed, last failed", "{report}");
    assert!(why(&report, "leaf").ends_with("the run was cut off before that"), "{report}");
    assert_eq!((report.interrupted, report.rolled_back), (true, false), "{report}");
    assert!(is_told_as_cut_off(&driver));
}

#[tokio::test(start_paused = true)]
async fn a_failing_step_that_is_cut_off_is_no_failure_that_calls_for_a_rollback() {
    let world = memory();
    let (driver, report) = interrupted(&world, Keys::CancelBefore).await;
    assert_eq!(statuses(&report), "hub changed, leaf changed, last failed", "{report}");
    assert!(why(&report, "last").starts_with("cut off"), "{report}");
    assert_eq!((report.rolled_back, report.exit_code), (false, Some(ExitCode::Partly)), "{report}");
    assert!(is_told_as_cut_off(&driver));
}

/// Keeps the names of all tasks.
#[derive(Default)]
struct Noting(Mutex<Vec<String>>);

impl Hooks<StepValue> for Noting {
    fn before_task(&self, task: &str) {
        self.0.lock().expect("nobody panics while holding this").push(task.to_owned());
    }
}

#[tokio::test]
async fn whoever_looks_on_is_told_of_the_rollback() {
    let host = Around::new(&memory(), |effect: Effect| async move {
        if effect.verb == "create" && effect.node == "leaf" { Gate::Refused } else { Gate::Open }
    });
    let noted = Arc::new(Noting::default());
    let driver = Driver { hooks: Arc::clone(&noted) as Arc<dyn Hooks<StepValue>>, ..Driver::of(&host) };
    driver.create(&tree()).await;
    let told = noted.0.lock().expect("nobody panics while holding this").split_off(3);
    assert_eq!(told, ["m.leaf@father/rollback", "m.hub@father/rollback"]);
}
