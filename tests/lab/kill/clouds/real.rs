//! The same with real machines behind the APIs, and configurations in them: one inside of another on a Proxmox VE, and one at
//! Hetzner Cloud.

use orch_plan::Verb;

use super::scene::{Scene, Things};
use super::snare::Moment;
use super::{Cell, Point, counts_of};
use crate::common::{Need, lacks, speaking_of, wait_until};
use crate::kill::moments::chosen;
use crate::kill::{edit, sweep};

/// The manifest that is on a host.
fn manifest_on(host: &str) -> &'static str {
    if host == "mother" { "nested-test" } else { "single-node-push" }
}

#[track_caller]
fn assert_as_wanted(scene: &Scene) {
    let things = scene.things();
    let marked = things.machines.iter().filter(|machine| machine.runs && !machine.mark.is_empty()).count();
    // What is inside of another is the other's to show; the status tells of both.
    assert_eq!((things.machines.len(), marked), (1, 1), "{things:#?}");
    for (verb, condition) in [("status", "as-wanted"), ("create", "unchanged")] {
        let told = scene.lab.orch(&format!("{} --json", scene.words(verb))).ends_with(0);
        told.every_node_is(condition);
    }
}

/// Makes, configures anew and destroys; each is killed and run again.
fn live_and_be_killed(cell: Cell) {
    let scene = Scene::real(cell.host, manifest_on(cell.host));
    let mut killed = scene.be_killed(Verb::Create, cell.point_in(0));
    scene.heal("create");
    assert_as_wanted(&scene);
    edit(&scene.lab);
    killed |= scene.be_killed(Verb::Config, cell.point_in(1));
    scene.heal("config");
    assert_as_wanted(&scene);
    killed |= scene.be_killed(Verb::Destroy, cell.point_in(2));
    scene.heal("destroy");
    assert_eq!(scene.things(), Things::default(), "nothing is left");
    let state = scene.lab.state.display().to_string();
    wait_until("no process is left", || speaking_of(&state).is_empty());
    assert!(killed, "somebody was killed: {cell:?}");
}

/// Every question at every moment and every entry, or one of `share`.
fn cells(host: &'static str, share: usize) -> Vec<Cell> {
    let scene = Scene::real(host, manifest_on(host));
    let counts = counts_of(&scene, |scene| edit(&scene.lab), Verb::Config);
    let (questions, entries) = (counts.map(|(questions, _)| questions), counts.map(|(_, entries)| entries));
    let most = |counts: [usize; 3]| counts.into_iter().max().unwrap_or_default();
    let asked = (1..=most(questions)).flat_map(|number| Moment::ALL.map(|moment| (number, moment)));
    let asked = asked.map(|(number, moment)| Cell {
        host,
        point: Point::Question(number, moment),
        counts: questions,
    });
    let written =
        (1..=most(entries)).map(|number| Cell { host, point: Point::Entry(number), counts: entries });
    chosen(asked.chain(written).collect(), share)
}

#[test]
fn a_nested_machine_whose_driver_is_killed_at_any_point_is_healed_by_running_it_again() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    sweep(cells("mother", 80), live_and_be_killed);
}

#[test]
fn a_configured_server_whose_driver_is_killed_at_any_point_is_healed_by_running_it_again() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    sweep(cells("cloud", 30), live_and_be_killed);
}
