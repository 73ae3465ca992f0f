//! A driver that is killed at any point leaves nothing that the next run does not set right.
//!
//! One cell of a sweep is a whole life of `nested-test`: made, configured anew and destroyed, and each of the three is
//! killed once and run again.

mod driver;
mod helpers;
mod moments;

use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;
use std::time::Instant;

use orch_plan::Verb;

use crate::common::{Lab, Need, assert_nothing_is_left, inits, lacks, wait_until};
use driver::Job;

const MANIFEST: &str = "nested-test";
const MACHINES: [&str; 2] = ["nested-test-inner-pve", "nested-test-test-vm"];
/// The entries of a create: its plan, start and end of four steps, two marks, and the last line.
const CREATE: usize = 12;
/// Those of a config or a destroy: its plan, start and end of two steps, and the last line.
const OTHER: usize = 6;

/// Runs a verb to its end, and asserts that it ends well.
#[track_caller]
fn heal(lab: &Lab, verb: &str) {
    let yes = if verb == "destroy" { "--yes" } else { "" };
    lab.orch(&format!("{verb} -M {MANIFEST} -H father --json {yes}")).ends_with(0);
}

/// Has the specs say something else than when the machines were made.
fn edit(lab: &Lab) {
    for spec in ["specs/base.yaml", "specs/pve.yaml"] {
        let text = std::fs::read_to_string(lab.site.join(spec)).unwrap();
        lab.write(spec, &text.replace("sudo: true", "sudo: false"));
    }
}

/// Asserts that every node is as wanted, that there is one machine of each and one first process of each machine, and
/// that there is nothing left to do.
#[track_caller]
fn assert_as_wanted(lab: &Lab) {
    assert_eq!(lab.machines(), MACHINES, "one machine for each node, and nothing half-made or half-gone");
    for machine in MACHINES {
        // What a killed driver had started may still be about to end.
        wait_until(&format!("{machine} has one first process"), || inits(lab, machine).len() <= 1);
        assert_eq!(inits(lab, machine), [lab.init(machine).unwrap()], "the first process of {machine}");
    }
    lab.orch(&format!("status -M {MANIFEST} -H father --json")).ends_with(0).every_node_is("as-wanted");
    lab.orch(&format!("create -M {MANIFEST} -H father --json")).ends_with(0).every_node_is("unchanged");
}

/// Destroys everything, and asserts that nothing is left.
#[track_caller]
fn assert_goes_away(lab: &Lab) {
    heal(lab, "destroy");
    assert_nothing_is_left(lab);
}

/// Makes, configures and destroys; each is killed when that many of its entries are on disk, and run again.
fn live_and_be_killed(entries: [usize; 3]) {
    let lab = Lab::with_sample_site();
    let [create, config, destroy] = entries;
    let killed = |verb: Verb, last: usize| {
        let status = Job::new(&lab, MANIFEST, verb, last).run();
        assert_eq!(status.signal(), Some(9), "{verb} is killed at entry {last}: {status}");
    };
    killed(Verb::Create, create);
    heal(&lab, "create");
    assert_as_wanted(&lab);
    edit(&lab);
    killed(Verb::Config, config);
    heal(&lab, "config");
    assert_as_wanted(&lab);
    killed(Verb::Destroy, destroy);
    assert_goes_away(&lab);
}

/// Runs cells, two at a time, and says of each that fails which it was.
fn sweep<C: Copy + std::fmt::Debug + Send + 'static>(cells: Vec<C>, check: fn(C)) {
    let (count, began) = (cells.len(), Instant::now());
    let (left, failed) = (Mutex::new(cells), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
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
    let other = |entry: usize| (entry - 1) % OTHER + 1;
    sweep((1..=CREATE).map(|entry| [entry, other(entry), other(entry)]).collect(), live_and_be_killed);
}

#[test]
fn a_create_that_is_killed_again_and_again_gets_there_in_the_end() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let lab = Lab::with_sample_site();
    for entry in 1..=5 {
        let status = Job::new(&lab, MANIFEST, Verb::Create, entry).run();
        assert_eq!(status.signal(), Some(9), "it is killed at entry {entry}: {status}");
    }
    heal(&lab, "create");
    assert_as_wanted(&lab);
    assert_goes_away(&lab);
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
    heal(&lab, "create");
    assert_as_wanted(&lab);
    leave();
    assert_goes_away(&lab);
}
