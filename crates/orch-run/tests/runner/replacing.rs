//! A node that was to be made anew and lost its old machine is told as failed, whatever became of the others.

use orch_model::Fleet;
use orch_plan::MachineState;
use orch_run::{ExitCode, NodeReport, Report};

use crate::common::{Around, Driver, Effect, Gate, memory, own_fleet, statuses};

/// A tree of two, and a third that waits for both.
fn tree(on_error: &str) -> Fleet {
    let nodes = "  - { name: hub, type: pve, spec: pve, preset: small, image: i }
  - { name: leaf, type: vm, spec: base, preset: small, image: i, parent: hub }
  - { name: last, type: vm, spec: base, preset: small, image: i, depends_on: [leaf] }";
    own_fleet(&format!("on_error: {on_error}, parallelism: 1"), nodes)
}

/// Makes the nodes with these machines anew and starts `last`, with one effect that is refused; what is left after it,
/// and whether running again heals it.
async fn replaced(on_error: &str, anew: &[&str], refused: (&'static str, &'static str)) -> (Report, usize) {
    let (world, fleet) = (memory(), tree(on_error));
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    for name in anew {
        world.tamper(name, |machine| machine.image = Some("another".into()));
    }
    world.tamper("m-last", |machine| machine.state = MachineState::Stopped);
    let host = Around::new(&world, move |effect: Effect| async move {
        if (effect.verb, effect.node.as_str()) == refused { Gate::Refused } else { Gate::Open }
    });
    let report = driver.now_of(&host).replace(&fleet).await;
    let left = world.world().machines.len();
    let healed = driver.now_of(&world).replace(&fleet).await;
    assert_eq!(healed.exit_code, Some(ExitCode::Done), "{healed}");
    crate::common::assert_as_wanted(&fleet, &world.world().machines);
    (report, left)
}

fn said(node: &NodeReport) -> (&str, &str) {
    (node.why.last().map_or("", String::as_str), node.hint.as_deref().unwrap_or_default())
}

const TAKEN_DOWN: &str = "its old machine was destroyed, and the new one was taken down again";
const NOT_MADE: &str = "its old machine was destroyed, and the new one was not made";
const ANEW: &str = "`create` makes it anew";

#[tokio::test]
async fn one_whose_new_machine_was_taken_down_again_is_failed_and_not_skipped() {
    let (report, left) = replaced("rollback", &["m-leaf"], ("start", "last")).await;
    assert_eq!(left, 2, "hub, and last: {report}");
    assert_eq!(statuses(&report), "hub unchanged, leaf failed, last failed", "{report}");
    assert_eq!(report.nodes[1].why, [TAKEN_DOWN], "{report}");
    assert_eq!(said(&report.nodes[1]), (TAKEN_DOWN, ANEW), "{report}");
}

#[tokio::test]
async fn one_whose_new_machine_was_not_made_says_so_beside_the_cause() {
    for on_error in ["stop", "rollback", "continue"] {
        let (report, left) = replaced(on_error, &["m-leaf"], ("create", "leaf")).await;
        assert_eq!(left, 2, "hub, and last: {report}");
        assert_eq!(statuses(&report), "hub unchanged, leaf failed, last skipped", "{report}");
        let (why, hint) = said(&report.nodes[1]);
        assert_eq!(report.nodes[1].why[0], "`father` refused: injected", "{report}");
        assert_eq!((why, hint.ends_with(ANEW)), (NOT_MADE, true), "{report}");
        assert!(hint.starts_with("mend what"), "the way out of the cause comes first: {report}");
    }
}

#[tokio::test]
async fn one_that_was_skipped_after_its_old_machine_was_destroyed_is_failed() {
    let (report, left) = replaced("stop", &["m-hub"], ("destroy", "hub")).await;
    assert_eq!(left, 2, "hub, and last: {report}");
    assert_eq!(statuses(&report), "hub failed, leaf failed, last skipped", "{report}");
    assert_eq!(report.nodes[0].why, ["`father` refused: injected"], "its old machine is there: {report}");
    assert_eq!(report.nodes[1].why, [NOT_MADE], "{report}");
    assert_eq!(said(&report.nodes[1]), (NOT_MADE, ANEW), "{report}");
}

#[tokio::test]
async fn one_whose_new_machine_was_made_and_not_configured_has_lost_nothing() {
    let (report, left) = replaced("stop", &["m-leaf"], ("configure", "leaf")).await;
    assert_eq!(
        (left, statuses(&report).as_str()),
        (3, "hub unchanged, leaf failed, last skipped"),
        "{report}"
    );
    assert!(!report.to_string().contains("its old machine was destroyed"), "{report}");
}
