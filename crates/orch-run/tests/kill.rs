//! A run that is killed at any point is healed by running it again, and a run that fails at any point leaves what it
//! says it leaves. Real processes, really killed.
//!
//! Every cell of a sweep is one way to end a run: a kind of fault at an effect, or a kill after an entry of the
//! journal. All of them run, four at a time: some 620, in about ten seconds of two cores.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;
use std::thread;

use common::process::{HalfWay, Job, Wrong, driver_process as drive};
use common::{assert_as_wanted, ours, strangers, with_ids};
use orch_model::Fleet;
use orch_plan::{Machine, MachineState, Verb, plan};
use orch_run::{ExitCode, NodeStatus, Report, RunState, Runs};
use tempfile::TempDir;

#[test]
fn driver_process() {
    drive();
}

/// A manifest of the sample site, and how many nodes it has. All of them are configured.
#[derive(Debug, Clone, Copy)]
struct Manifest(&'static str, usize);

const NESTED: Manifest = Manifest("nested-test", 2);
const DEEP: Manifest = Manifest("deep-test", 3);
const WORKERS: Manifest = Manifest("workers", 3);

/// What is there before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// What the verb is for: nothing of ours, or everything.
    Usual,
    /// Everything, but the first machine is off, the second is too small, and the third is of another image and made
    /// anew.
    Drifted,
    /// Everything, but the machine that another lives on is of another image: both are made anew.
    Outdated,
}

/// One way to end a run.
#[derive(Debug, Clone)]
struct Cell {
    manifest: Manifest,
    verb: Verb,
    start: Start,
    on_error: &'static str,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum End {
    /// At this effect.
    Effect(usize, Wrong),
    /// It is refused at the first effect, and the run is killed at the second, while it rolls back.
    Rollback(usize, usize, Wrong),
    /// When the machine of this number is half made.
    HalfWay(usize),
    /// When this many entries are on disk.
    Entry(usize),
}

/// The effects by which a machine is made: created, configured, known by its keys, told to put away the key that it was made
/// with, and known by nothing else.
const MADE: usize = 5;

impl Manifest {
    /// The effects of a verb: each node is made, configured and made known, or configured, or destroyed.
    const fn effects(self, verb: Verb) -> usize {
        match verb {
            Verb::Create => MADE * self.1,
            Verb::Config | Verb::Destroy => self.1,
        }
    }

    /// The steps of a verb: each node is made and configured, or configured, or destroyed.
    const fn steps(self, verb: Verb) -> usize {
        match verb {
            Verb::Create => 2 * self.1,
            Verb::Config | Verb::Destroy => self.1,
        }
    }

    /// The entries of a run to its end: its plan, start and end of each step, a mark for each machine that is made, what is
    /// left after everything was taken down, and the last line.
    const fn entries(self, verb: Verb) -> usize {
        let marks = if matches!(verb, Verb::Create) { self.1 } else { 0 };
        let looks = if matches!(verb, Verb::Destroy) { 1 } else { 0 };
        1 + 2 * self.steps(verb) + marks + looks + 1
    }
}

fn cells(manifest: Manifest) -> Vec<Cell> {
    let mut cells = Vec::new();
    for verb in [Verb::Create, Verb::Config, Verb::Destroy] {
        let start = Start::Usual;
        let mut add = |on_error, end| cells.push(Cell { manifest, verb, start, on_error, end });
        for on_error in ["stop", "rollback"] {
            for effect in 1..=manifest.effects(verb) {
                for wrong in Wrong::ALL {
                    add(on_error, End::Effect(effect, wrong));
                }
            }
        }
        (1..=manifest.entries(verb)).for_each(|entry| add("stop", End::Entry(entry)));
        if verb == Verb::Create {
            (1..=manifest.1).for_each(|machine| add("stop", End::HalfWay(machine)));
        }
    }
    cells
}

/// Runs that are killed while they roll back. When an effect on the first of two machines is refused one was made, which
/// the next effect takes down; when one on the second is refused that is there already, two were.
fn rollback_cells() -> Vec<Cell> {
    let cell = |(refused, killed, wrong)| {
        let end = End::Rollback(refused, killed, wrong);
        Cell { manifest: NESTED, verb: Verb::Create, start: Start::Usual, on_error: "rollback", end }
    };
    let places = [(2, 3), (4, 5), (MADE + 1, MADE + 2), (MADE + 2, MADE + 3), (MADE + 2, MADE + 4)];
    let kinds = [Wrong::KillBefore, Wrong::KillAfter];
    places.iter().flat_map(|(refused, killed)| kinds.map(|wrong| cell((*refused, *killed, wrong)))).collect()
}

/// Runs that find machines which have changed since they were made.
fn drift_cells(start: Start) -> Vec<Cell> {
    let manifest = if start == Start::Outdated { NESTED } else { WORKERS };
    let mut cells = Vec::new();
    let mut add = |on_error, end| cells.push(Cell { manifest, verb: Verb::Create, start, on_error, end });
    for on_error in ["stop", "rollback", "continue"] {
        for effect in 1..=start.effects() {
            for wrong in Wrong::ALL {
                add(on_error, End::Effect(effect, wrong));
            }
        }
    }
    (1..=start.entries()).for_each(|entry| add("stop", End::Entry(entry)));
    (1..=start.anew()).for_each(|machine| add("stop", End::HalfWay(machine)));
    cells
}

impl Start {
    /// How many machines are made anew.
    const fn anew(self) -> usize {
        match self {
            Self::Usual => 0,
            Self::Drifted => 1,
            Self::Outdated => 2,
        }
    }

    /// Each machine that is made anew is destroyed first; beside those one is started, one resized.
    const fn effects(self) -> usize {
        (1 + MADE) * self.anew() + self.others()
    }

    const fn others(self) -> usize {
        if matches!(self, Self::Drifted) { 2 } else { 0 }
    }

    /// The plan, start and end of each step, a mark for each machine that is made, and the last line.
    const fn entries(self) -> usize {
        1 + 2 * (3 * self.anew() + self.others()) + self.anew() + 1
    }
}

impl Cell {
    /// The entries of a run to its end.
    fn entries(&self) -> usize {
        match self.start {
            Start::Usual => self.manifest.entries(self.verb),
            Start::Drifted | Start::Outdated => self.start.entries(),
        }
    }

    fn job(&self, folder: &TempDir) -> Job {
        let mut job = Job::new(folder.path(), self.verb);
        self.on_error.clone_into(&mut job.on_error);
        self.manifest.0.clone_into(&mut job.manifest);
        job.edited = self.verb == Verb::Config;
        job.replace = self.start != Start::Usual;
        match self.end {
            End::Effect(effect, wrong) => job.faults.push((effect, wrong)),
            End::Rollback(refused, killed, wrong) => {
                job.faults.extend([(refused, Wrong::Refuse), (killed, wrong)]);
            }
            End::HalfWay(machine) => job.half_way = Some((machine, HalfWay::Kill)),
            End::Entry(entry) => job.kill_after_entry = Some(entry),
        }
        job
    }

    const fn kills(&self) -> bool {
        match self.end {
            End::Effect(_, wrong) => matches!(wrong, Wrong::KillBefore | Wrong::KillAfter),
            End::Rollback(..) | End::HalfWay(_) | End::Entry(_) => true,
        }
    }

    /// Ends a run this way, checks what is left, runs again, and checks that all is well.
    async fn check(&self) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let job = self.job(&folder);
        let before = World::prepare(self.verb, self.start, &job).await;
        let status = job.run();
        assert_eq!(status.signal().is_some(), self.kills(), "{status}");
        self.check_left(&job, &before);
        before.check_healed(&job).await;
    }

    /// What holds before anybody runs again.
    fn check_left(&self, job: &Job, before: &World) {
        let machines = job.world().world().machines;
        before.check_strangers(&machines);
        let runs = Runs::of(job.state()).newest(1).expect("runs can be listed");
        let report = runs[0].report.as_ref().expect("the journal of any run can be read");
        assert_eq!(report.verb, self.verb, "the newest run is the one that was ended");
        let told: Vec<_> = report.nodes.iter().map(|node| &node.identity).collect();
        let nodes: Vec<_> = before.fleet.nodes.iter().map(|node| &node.identity).collect();
        assert_eq!(told, nodes, "every node is told, once: {report}");
        let is_last = matches!(self.end, End::Entry(entry) if entry == self.entries());
        if !self.kills() || is_last {
            assert_eq!(
                (report.state, report.count(NodeStatus::Unfinished)),
                (RunState::Finished, 0),
                "{report}"
            );
        } else {
            assert_eq!(report.state, RunState::Killed, "{report}");
            assert_ne!(report.exit_code, Some(ExitCode::Done), "{report}");
        }
        let is_done = report.exit_code == Some(ExitCode::Done);
        if !self.kills() {
            self.check_judged(is_done, report);
        }
        if self.on_error == "rollback" && self.verb == Verb::Create && !self.kills() && !is_done {
            self.check_rolled_back(report, before, &machines);
        }
    }

    /// Only a lost answer is no failure. What a new node is known by comes with the answer to its first configuration: that
    /// one cannot be read back. And one that is to put away its first key is asked twice.
    fn check_judged(&self, is_done: bool, report: &Report) {
        let End::Effect(_, wrong) = self.end else { unreachable!("everything else is a kill") };
        let is_made_known = self.verb == Verb::Create;
        match (wrong, is_done) {
            (Wrong::LoseAnswer, true) => {}
            (Wrong::LoseAnswer, false) if is_made_known => {
                let said = report.to_string();
                assert!(said.contains("configure failed") && !said.contains("create failed"), "{report}");
            }
            (Wrong::FailBefore, true) => assert!(is_made_known, "what was not done is a failure: {report}"),
            (wrong, is_done) => {
                assert!(!is_done && wrong != Wrong::LoseAnswer, "only a lost answer is no failure: {report}");
            }
        }
    }

    /// Nothing remains of what a failed run made, and all of the rest.
    fn check_rolled_back(&self, report: &Report, before: &World, machines: &[Machine]) {
        let left = ours(&before.fleet, machines);
        match self.start {
            Start::Usual => {
                assert!(report.rolled_back, "{report}");
                assert_eq!(left.len(), 0, "nothing remains of a failed run: {report}");
            }
            Start::Drifted | Start::Outdated => {
                let is_kept = |machine: &&Machine| before.ours.iter().any(|old| old.id == machine.id);
                let kept = machines.iter().filter(is_kept).count();
                assert_eq!(left.len(), kept, "nothing remains that a failed run made: {report}");
                let lost = before.ours.len() - kept;
                assert!(lost <= self.start.anew(), "what is not to be made anew stays: {report}");
                let told = report.to_string().matches("its old machine was destroyed").count();
                assert_eq!(told, lost, "each lost machine is told: {report}");
            }
        }
    }
}

/// What was there before the run that is ended.
struct World {
    verb: Verb,
    start: Start,
    fleet: Fleet,
    strangers: Vec<Machine>,
    /// The machines of the manifest.
    ours: Vec<Machine>,
    made: u64,
}

impl World {
    /// Strangers, and for `config` and `destroy` and where they are to have drifted the machines of the manifest.
    async fn prepare(verb: Verb, start: Start, job: &Job) -> Self {
        let (world, driver) = job.healthy();
        let fleet = job.fleet();
        let strangers = strangers(&fleet);
        strangers.iter().cloned().for_each(|stranger| world.put(stranger));
        if verb != Verb::Create || start != Start::Usual {
            let unedited = Job { edited: false, ..job.clone() };
            let report = driver.create(&unedited.fleet()).await;
            assert_eq!(report.exit_code, Some(ExitCode::Done), "{report}");
        }
        let outdate = |machine: &mut Machine| machine.image = Some("another".into());
        match start {
            Start::Usual => {}
            Start::Drifted => {
                world.tamper("workers-worker-1", |machine| machine.state = MachineState::Stopped);
                world.tamper("workers-worker-2", |machine| machine.size.memory /= 2);
                world.tamper("workers-worker-3", outdate);
            }
            Start::Outdated => world.tamper("nested-test-inner-pve", outdate),
        }
        let ours = world.world().machines.split_off(strangers.len());
        Self { verb, start, fleet, strangers, ours, made: world.world().made }
    }

    fn check_strangers(&self, machines: &[Machine]) {
        assert_eq!(with_ids(machines, &self.strangers), self.strangers, "strangers are as they were");
    }

    /// Runs again, with nothing wrong, and once more: then there is nothing left to do.
    async fn check_healed(&self, job: &Job) {
        let (world, driver) = job.healthy();
        let goal = job.goal();
        let planned = plan(&self.fleet, &driver.observed().await, &goal).expect("everything is selected");
        let again = driver.run(&planned).await;
        assert_eq!(again.exit_code, Some(ExitCode::Done), "running again heals: {again}");
        let machines = world.world().machines;
        self.check_strangers(&machines);
        if self.verb == Verb::Destroy {
            assert_eq!(machines, self.strangers, "nothing is left: {again}");
        } else {
            assert_as_wanted(&self.fleet, &machines);
            assert_eq!(
                machines.len(),
                self.strangers.len() + self.fleet.nodes.len(),
                "nothing is left over: {again}"
            );
        }
        self.check_made(job, world.world().made);
        let plan = plan(&self.fleet, &driver.observed().await, &goal).expect("everything is selected");
        assert!(plan.is_noop(), "and then there is nothing to do: {plan}");
    }

    /// Only a rollback explains more machines than nodes; nothing else ever makes one twice.
    fn check_made(&self, job: &Job, made: u64) {
        let nodes =
            if self.start == Start::Usual { self.fleet.nodes.len() } else { self.start.anew() } as u64;
        let most = match (self.verb, job.on_error.as_str()) {
            (Verb::Create, "rollback") => self.made + 2 * nodes,
            (Verb::Create, _) => self.made + nodes,
            (Verb::Config | Verb::Destroy, _) => self.made,
        };
        assert!(made <= most, "{made} machines were made, {} before", self.made);
    }
}

/// Runs cells, four at a time, and says of each that fails which it was.
#[expect(clippy::print_stderr, reason = "whoever waits may see for how many")]
fn sweep(cells: Vec<Cell>) {
    let (count, began) = (cells.len(), std::time::Instant::now());
    let (left, failed) = (Mutex::new(cells), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("nobody panics while holding this").pop();
                    let Some(cell) = next else { break };
                    let name = format!("{cell:?}");
                    // A thread of its own, so that a cell that fails does not take the others with it.
                    if thread::spawn(move || block_on(cell.check())).join().is_err() {
                        failed.lock().expect("nobody panics while holding this").push(name);
                    }
                }
            });
        }
    });
    eprintln!("{count} cells in {:.1?}", began.elapsed());
    let failed = failed.into_inner().expect("nobody panics while holding this");
    assert!(failed.is_empty(), "{} of {count} cells failed:\n{}", failed.len(), failed.join("\n"));
}

fn block_on(cell: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be built").block_on(cell);
}

#[test]
fn a_run_that_is_ended_at_any_point_is_healed_by_running_it_again() {
    sweep(cells(NESTED));
}

#[test]
fn a_run_that_is_killed_while_it_rolls_back_is_healed_by_running_it_again() {
    sweep(rollback_cells());
}

#[test]
fn so_is_one_of_three_levels_and_one_whose_nodes_are_made_at_once() {
    sweep([cells(DEEP), cells(WORKERS)].concat());
}

#[test]
fn so_is_one_that_starts_resizes_and_makes_anew() {
    sweep([drift_cells(Start::Drifted), drift_cells(Start::Outdated)].concat());
}

/// Kills run after run of the same create, each one entry further, and heals only at the end.
#[tokio::test]
async fn a_run_that_is_killed_again_and_again_gets_there_in_the_end() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut job = Job::new(folder.path(), Verb::Create);
    let before = World::prepare(Verb::Create, Start::Usual, &job).await;
    for entry in 1..=6 {
        job.kill_after_entry = Some(entry);
        assert!(job.run().signal().is_some(), "it is killed after entry {entry}");
    }
    before.check_healed(&Job { on_error: "stop".into(), ..job }).await;
}

/// A journal without room for more than these bytes after its plan.
fn on_full_disk(room: u64, on_error: &str) -> common::process::Said {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut job = Job::new(folder.path(), Verb::Create);
    job.journal_room = Some(room);
    on_error.clone_into(&mut job.on_error);
    let status = job.start_on_full_disk().wait();
    assert!(status.success(), "a full disk is no reason to crash: {status}");
    job.said()
}

#[test]
fn a_journal_that_cannot_be_written_stops_new_work_and_is_told() {
    let mut stopped_at = std::collections::BTreeSet::new();
    for on_error in ["stop", "continue"] {
        for room in (0..2000).step_by(250) {
            let said = on_full_disk(room, on_error);
            let error = said.journal_error.expect("it is told");
            assert!(error.contains("File too large"), "the cause is told: {error}");
            assert!(said.text.contains("the journal could not be written"), "{}", said.text);
            assert_ne!(said.exit_code, 0, "with room for {room} bytes: {}", said.text);
            stopped_at.insert(said.effects);
        }
    }
    assert_eq!(stopped_at.first(), Some(&0), "what cannot be written down is not done");
    assert!(stopped_at.len() > 2, "it stopped at different effects: {stopped_at:?}");
}

#[test]
fn what_a_run_could_not_take_down_because_its_journal_is_full_is_told() {
    let mut kept = 0;
    for room in (0..2000).step_by(60) {
        let said = on_full_disk(room, "rollback");
        assert!(said.journal_error.is_some(), "with room for {room} bytes: {}", said.text);
        assert_ne!(said.exit_code, 0, "with room for {room} bytes: {}", said.text);
        assert!(!said.rolled_back || said.machines == 0, "with room for {room} bytes: {}", said.text);
        assert!(
            said.machines == 0 || said.text.contains("create 0."),
            "what was made is told: {}",
            said.text
        );
        kept += said.text.matches("could not be taken down again: the journal").count();
    }
    assert!(
        kept > 0,
        "some run failed for want of a mark, and could not write down that it takes others down"
    );
}

#[test]
fn a_journal_with_room_for_everything_is_no_error() {
    let said = on_full_disk(1 << 20, "stop");
    assert_eq!((said.exit_code, said.journal_error, said.effects), (0, None, 2 * MADE), "{}", said.text);
}
