//! Kills of the processes that start a machine, which outlive nobody and must leave nothing.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::{NESTED, sweep};
use crate::common::{Lab, Need, lacks, speaking_of};

/// A helper, and how many looks later it is killed.
#[derive(Debug, Clone, Copy)]
struct Cell {
    helper: &'static str,
    looks: usize,
}

/// The process of a lab that was started with this word.
fn find(lab: &Lab, helper: &str) -> Option<Pid> {
    let found = speaking_of(&format!("__local {helper} {}", lab.state.display()));
    found.first().and_then(|pid| Pid::from_raw(*pid))
}

/// Kills a helper of a create, some time after it was started, and lets the create end as it may.
fn kill_once(lab: &Lab, cell: Cell) -> bool {
    let mut create = lab.start(&NESTED.words("create"));
    let deadline = Instant::now() + std::time::Duration::from_secs(30);
    let (mut seen, mut killed) = (0, false);
    while !killed && !create.has_ended() && Instant::now() < deadline {
        if let Some(pid) = find(lab, cell.helper) {
            seen += 1;
            killed = seen > cell.looks && kill_process(pid, Signal::KILL).is_ok();
        }
    }
    create.end();
    killed
}

/// The same, again where the helper had ended before it could be killed: it lives for some milliseconds only.
fn kill_at_last(lab: &Lab, cell: Cell) {
    let is_killed = |_| {
        let is_killed = kill_once(lab, cell);
        if !is_killed {
            NESTED.heal(lab, "destroy");
        }
        is_killed
    };
    assert!((0..20).any(is_killed), "{cell:?} was never there to be killed");
}

fn live_without(cell: Cell) {
    let lab = Lab::with_sample_site();
    kill_at_last(&lab, cell);
    NESTED.heal(&lab, "create");
    NESTED.assert_as_wanted(&lab);
    NESTED.assert_goes_away(&lab);
}

/// The same, but what was begun is destroyed and not finished.
fn go_without(cell: Cell) {
    let lab = Lab::with_sample_site();
    kill_at_last(&lab, cell);
    NESTED.assert_goes_away(&lab);
}

fn cells(looks: &[usize]) -> Vec<Cell> {
    let cell = |looks: &usize| ["boot", "unshare", "init"].map(|helper| Cell { helper, looks: *looks });
    looks.iter().flat_map(cell).collect()
}

#[test]
fn a_machine_whose_starting_is_killed_half_way_is_started_by_the_next_run() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    sweep(cells(&[0, 1]), live_without);
}

#[test]
fn a_machine_whose_starting_is_killed_half_way_can_be_destroyed_without_a_trace() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    sweep(cells(&[0, 2]), go_without);
}
