//! Ctrl-C, once and twice.

use rustix::process::Signal;

use super::{CREATE, DESTROY, NEEDS, edit, motd, start_configuring};
use crate::common::{Gate, Lab, TIMEOUTS, assert_nothing_is_left, lacks, node, wait_until};

/// Two nodes, the second of which waits for the first.
fn one_after_the_other() -> Lab {
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a"), &format!("{}, depends_on: [a]", node("b"))]);
    lab.orch(CREATE).ends_with(0);
    edit(&lab);
    lab
}

fn heal(lab: &Lab) {
    lab.orch(CREATE).ends_with(0);
    assert_eq!([motd(lab, "lab-a"), motd(lab, "lab-b")], ["as wanted now"; 2]);
    lab.orch(CREATE).ends_with(0).every_node_is("unchanged");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(lab);
}

#[test]
fn the_first_interrupt_lets_running_steps_end_and_starts_nothing_new() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = one_after_the_other();
    let gate = Gate::hold(&lab, "lab-a");
    let create = start_configuring(&lab, &gate);
    create.signal(Signal::INT);
    wait_until("the interrupt was taken", || !is_pending(create.pid()));
    drop(gate);
    let partly = create.end().ends_with(2);
    assert_eq!(partly.json()["interrupted"], true);
    assert_eq!(
        [partly.node("a"), partly.node("b")].map(|node| node["status"].clone()),
        ["changed", "skipped"]
    );
    assert_eq!([motd(&lab, "lab-a"), motd(&lab, "lab-b")], ["as wanted now", "as wanted"]);
    heal(&lab);
}

#[test]
fn the_second_interrupt_cuts_running_steps_off_and_there_is_a_report_all_the_same() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = one_after_the_other();
    let gate = Gate::hold(&lab, "lab-a");
    let mut create = start_configuring(&lab, &gate);
    // Two that come at once may count as one, so there are as many as it takes.
    wait_until("it ends, though the gate is shut", || {
        create.signal(Signal::INT);
        create.has_ended()
    });
    let cut = create.end().ends_with(1);
    assert_eq!(cut.json()["interrupted"], true);
    assert_eq!([cut.node("a"), cut.node("b")].map(|node| node["status"].clone()), ["failed", "skipped"]);
    lab.orch("runs show latest").ends_with(0).says("interrupted");
    drop(gate);
    heal(&lab);
}

/// Whether a signal waits to be taken by a process.
fn is_pending(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let masks = status.lines().filter(|line| line.starts_with("SigPnd") || line.starts_with("ShdPnd"));
    masks.filter_map(|line| line.split_whitespace().nth(1)).any(|mask| !mask.trim_matches('0').is_empty())
}
