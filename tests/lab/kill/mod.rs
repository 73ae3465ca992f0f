//! A driver that is killed at any point leaves nothing that the next run does not set right.
//!
//! One cell of a sweep is a whole life of `nested-test`: made, configured anew and destroyed, and each of the three is
//! killed once and run again.

mod clouds;
mod driver;
mod helpers;
mod moments;

use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;
use std::time::Instant;

use orch_plan::Verb;

use crate::common::{Lab, Need, assert_nothing_stays, inits, lacks, wait_until};
use driver::Job;
pub(crate) use moments::{chosen, seed};

/// A manifest of the sample site, and the machines that it makes.
#[derive(Debug, Clone, Copy)]
struct Fleet {
    manifest: &'static str,
    machines: &'static [&'static str],
}

/// One machine inside of another.
const NESTED: Fleet =
    Fleet { manifest: "nested-test", machines: &["nested-test-inner-pve", "nested-test-test-vm"] };
/// Three at once.
const WORKERS: Fleet =
    Fleet { manifest: "workers", machines: &["workers-worker-1", "workers-worker-2", "workers-worker-3"] };

impl Fleet {
    /// The words of a command about it.
    fn words(self, verb: &str) -> String {
        let yes = if verb == "destroy" { "--yes" } else { "" };
        format!("{verb} -M {} -H father {yes}", self.manifest)
    }

    /// Runs a verb to its end, and asserts that it ends well.
    #[track_caller]
    fn heal(self, lab: &Lab, verb: &str) {
        lab.orch(&self.words(verb)).ends_with(0);
    }

    /// Asserts that every node is as wanted, that there is one machine of each and one first process of each machine,
    /// and that there is nothing left to do.
    #[track_caller]
    fn assert_as_wanted(self, lab: &Lab) {
        assert_eq!(lab.machines(), self.machines, "one machine for each node, none half-made or half-gone");
        for machine in self.machines {
            // What a killed driver had started may still be about to end.
            wait_until(&format!("{machine} has one first process"), || inits(lab, machine).len() <= 1);
            assert_eq!(inits(lab, machine), [lab.init(machine).unwrap()], "the first process of {machine}");
        }
        let json = |verb| lab.orch(&format!("{} --json", self.words(verb))).ends_with(0);
        json("status").every_node_is("as-wanted");
        json("create").every_node_is("unchanged");
    }

    /// Destroys everything, and asserts that nothing is left.
    #[track_caller]
    fn assert_goes_away(self, lab: &Lab) {
        self.heal(lab, "destroy");
        assert_nothing_stays(lab);
    }
}

/// Has the specs say something else than when the machines were made.
fn edit(lab: &Lab) {
    for spec in ["specs/base.yaml", "specs/pve.yaml"] {
        let text = std::fs::read_to_string(lab.site.join(spec)).unwrap();
        lab.write(spec, &text.replace("sudo: true", "sudo: false"));
    }
}

/// How many entries the journal of a run of `nested-test` has: its plan, start and end of each step, a mark for each
/// machine that is made, what is left after everything was taken down, and the last line.
const fn entries(verb: Verb) -> usize {
    match verb {
        Verb::Create => 1 + 2 * 4 + 2 + 1,
        Verb::Config => 1 + 2 * 2 + 1,
        Verb::Destroy => 1 + 2 * 2 + 1 + 1,
    }
}

/// Runs a verb and has the driver killed when that many entries are on disk.
#[track_caller]
fn kill(lab: &Lab, verb: Verb, last: usize) {
    let status = Job::new(lab, NESTED.manifest, verb, last).run();
    assert_eq!(status.signal(), Some(9), "{verb} is killed at entry {last}: {status}");
    let newest = std::fs::read_dir(lab.state.join("runs")).unwrap().flatten().map(|run| run.path()).max();
    let journal = std::fs::read_to_string(newest.unwrap()).unwrap();
    assert_eq!(journal.lines().count(), last, "{journal}");
    assert_eq!(journal.contains("\"event\":\"finished\""), last == entries(verb), "{journal}");
}

/// Makes, configures and destroys; each is killed when that many of its entries are on disk, and run again.
fn live_and_be_killed([create, config, destroy]: [usize; 3]) {
    let lab = Lab::with_sample_site();
    kill(&lab, Verb::Create, create);
    NESTED.heal(&lab, "create");
    NESTED.assert_as_wanted(&lab);
    edit(&lab);
    kill(&lab, Verb::Config, config);
    NESTED.heal(&lab, "config");
    NESTED.assert_as_wanted(&lab);
    kill(&lab, Verb::Destroy, destroy);
    NESTED.assert_goes_away(&lab);
}

/// Runs cells, two at a time, and says of each that fails which it was.
fn sweep<C: Copy + std::fmt::Debug + Send + 'static>(cells: Vec<C>, check: fn(C)) {
    sweep_at_once(2, cells, check);
}

/// The same with so many at a time.
pub(crate) fn sweep_at_once<C: Copy + std::fmt::Debug + Send + 'static>(
    at_once: usize,
    cells: Vec<C>,
    check: fn(C),
) {
    let (count, began) = (cells.len(), Instant::now());
    let (left, failed) = (Mutex::new(cells), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let Some(cell) = left.lock().unwrap().pop() else { break };
                    // A thread of its own, so that a cell that fails does not take the others with it.
                    if std::thread::spawn(move || check(cell)).join().is_err() {
                        failed.lock().unwrap().push(format!("{cell:?}"));
                    }
                }
            });
        }
    });
    eprintln!("{count} cells in {:.1?}", began.elapsed());
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {count} cells failed: {}", failed.len(), failed.join(", "));
}

#[test]
fn a_driver_that_is_killed_after_any_entry_of_its_journal_is_healed_by_running_it_again() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    // A create has the most entries; the others have all of theirs more than once.
    let cell = |entry: usize| {
        [Verb::Create, Verb::Config, Verb::Destroy].map(|verb| (entry - 1) % entries(verb) + 1)
    };
    sweep((1..=entries(Verb::Create)).map(cell).collect(), live_and_be_killed);
}

#[test]
fn a_create_that_is_killed_again_and_again_gets_there_in_the_end() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let lab = Lab::with_sample_site();
    for entry in 1..=5 {
        kill(&lab, Verb::Create, entry);
    }
    NESTED.heal(&lab, "create");
    NESTED.assert_as_wanted(&lab);
    NESTED.assert_goes_away(&lab);
}

#[test]
fn what_killed_drivers_left_half_made_and_half_gone_is_tidied_by_the_next_run() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let lab = Lab::with_sample_site();
    let leave = || {
        for name in
            [".new-0b25a2b0-4f5e-4b0f-8b7e-000000000001", ".gone-0b25a2b0-4f5e-4b0f-8b7e-000000000002"]
        {
            std::fs::create_dir_all(lab.machine(name).join("root")).unwrap();
        }
    };
    leave();
    NESTED.heal(&lab, "create");
    NESTED.assert_as_wanted(&lab);
    leave();
    NESTED.assert_goes_away(&lab);
}
