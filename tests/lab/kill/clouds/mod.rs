//! A driver that is killed at any question to a Proxmox VE or to Hetzner Cloud, or at any entry of its journal, leaves
//! nothing that the next run does not set right.
//!
//! One cell of a sweep is a whole life of two machines: made, resized and destroyed, and each of the three is killed once
//! and run again. The machines are on paper, so that what is swept is the provider and nothing else.

mod daemon;
mod real;
mod scene;
mod snare;

use std::collections::BTreeSet;

use orch_plan::Verb;
use serde_json::Value as Json;

use super::driver::Job;
use super::moments::chosen;
use super::sweep;
use scene::{Machine, Scene};
use snare::Moment;

/// Where the driver is killed.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// At a question to the API.
    Question(usize, Moment),
    /// When this many entries of the journal are on disk.
    Entry(usize),
}

/// A host, the point at which each driver is killed, and how many there are in making, resizing and destroying: the
/// later ones begin again where they have fewer.
#[derive(Debug, Clone, Copy)]
struct Cell {
    host: &'static str,
    point: Point,
    counts: [usize; 3],
}

impl Cell {
    fn point_in(self, step: usize) -> Point {
        let wrapped = |number: usize| (number - 1) % self.counts[step] + 1;
        match self.point {
            Point::Question(number, moment) => Point::Question(wrapped(number), moment),
            Point::Entry(number) => Point::Entry(wrapped(number)),
        }
    }
}

impl Scene {
    /// Runs a verb and has its driver killed; one that asks less than the last time may get away.
    fn be_killed(&self, verb: Verb, point: Point) -> bool {
        match point {
            Point::Question(number, moment) => self.kill(&verb.to_string(), (number, moment)),
            Point::Entry(number) => {
                let job = Job::new(&self.lab, self.manifest, verb, number).in_lab(self.host, &self.file);
                !job.run().success()
            }
        }
    }

    /// Asserts that there is one machine of each node and nothing beside what belongs to them, and that there is nothing
    /// left to do.
    #[track_caller]
    fn assert_as_wanted(&self, stranger: &Json) {
        let things = self.things();
        let names: Vec<&str> = things.machines.iter().map(|machine| machine.name.as_str()).collect();
        let set: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!((names.len(), set), (2, BTreeSet::from(["pair-a-1", "pair-a-2"])), "{things:#?}");
        let marks: BTreeSet<&str> = things.machines.iter().map(|machine| machine.mark.as_str()).collect();
        assert!(marks.len() == 2 && !marks.contains(""), "each bears a mark of its own: {things:#?}");
        assert!(things.machines.iter().all(|machine| machine.runs), "{things:#?}");
        let is_of = |thing: &str| {
            let ends = things.machines.iter().flat_map(|Machine { id, mark, .. }| {
                [format!("vm-{id}-disk-0"), format!("orch-{mark}"), format!(" of {id}")]
            });
            // A disc has one word more, which tells it from others for the same machine.
            let name = thing
                .strip_suffix(".iso")
                .and_then(|disc| disc.rsplit_once('-'))
                .map_or(thing, |(name, _)| name);
            thing.starts_with("placement_groups") || { ends }.any(|end| name.ends_with(&end))
        };
        let foreign: Vec<&String> = things.beside.iter().filter(|thing| !is_of(thing)).collect();
        assert!(foreign.is_empty(), "these belong to nobody: {foreign:#?}\n{things:#?}");
        assert!(things.beside.len() <= 5, "each has what it needs, once: {things:#?}");
        let again = self.lab.orch(&format!("{} --json", self.words("create"))).ends_with(0);
        again.every_node_is("unchanged");
        assert_eq!(self.stranger(), *stranger, "a stranger is not touched");
    }

    #[track_caller]
    fn assert_goes_away(&self, stranger: &Json) {
        self.heal("destroy");
        assert_eq!(self.things(), scene::Things::default(), "nothing is left");
        assert_eq!(self.stranger(), *stranger, "a stranger is not touched");
    }
}

/// Makes, resizes and destroys; each is killed and run again.
fn live_and_be_killed(cell: Cell) {
    let scene = Scene::on(cell.host);
    let stranger = scene.stranger();
    let mut killed = scene.be_killed(Verb::Create, cell.point_in(0));
    scene.heal("create");
    scene.assert_as_wanted(&stranger);
    scene.want("more");
    killed |= scene.be_killed(Verb::Create, cell.point_in(1));
    scene.heal("create");
    scene.assert_as_wanted(&stranger);
    killed |= scene.be_killed(Verb::Destroy, cell.point_in(2));
    scene.assert_goes_away(&stranger);
    assert!(killed, "somebody was killed: {cell:?}");
}

/// How many questions each of the three asks, and how many entries its journal has.
fn counted(host: &'static str) -> [(usize, usize); 3] {
    counts_of(&Scene::on(host), |scene| scene.want("more"), Verb::Create)
}

/// The same for making, doing something after a change, and destroying.
fn counts_of(scene: &Scene, change: fn(&Scene), then: Verb) -> [(usize, usize); 3] {
    let entries = || {
        let runs = std::fs::read_dir(scene.lab.state.join("lab/driver/runs")).unwrap().flatten();
        let newest = runs.map(|run| run.path()).max().unwrap();
        std::fs::read_to_string(newest).unwrap().lines().count()
    };
    let created = (scene.heal("create"), entries());
    change(scene);
    let changed = (scene.heal(&then.to_string()), entries());
    let counts = [created, changed, (scene.heal("destroy"), entries())];
    eprintln!("{}: questions and entries of each: {counts:?}", scene.host);
    counts
}

/// Every question of a create, of either of the others where they have more, and each at every moment.
fn questions(host: &'static str, share: usize) -> Vec<Cell> {
    let counts = counted(host).map(|(questions, _)| questions);
    let most = counts.into_iter().max().unwrap_or_default();
    let all = (1..=most).flat_map(|number| Moment::ALL.map(|moment| Point::Question(number, moment)));
    chosen(all.map(|point| Cell { host, point, counts }).collect(), share)
}

fn entries(host: &'static str, share: usize) -> Vec<Cell> {
    let counts = counted(host).map(|(_, entries)| entries);
    let most = counts.into_iter().max().unwrap_or_default();
    chosen((1..=most).map(|number| Cell { host, point: Point::Entry(number), counts }).collect(), share)
}

#[test]
fn a_driver_that_is_killed_at_any_question_to_a_proxmox_is_healed_by_running_it_again() {
    sweep(questions("pve", 12), live_and_be_killed);
}

#[test]
fn a_driver_that_is_killed_at_any_question_to_hetzner_is_healed_by_running_it_again() {
    sweep(questions("cloud", 12), live_and_be_killed);
}

#[test]
fn a_driver_of_either_cloud_that_is_killed_after_any_entry_is_healed_by_running_it_again() {
    sweep([entries("pve", 3), entries("cloud", 3)].concat(), live_and_be_killed);
}
