//! Ctrl-C, once and twice.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{CREATE, DESTROY, NEEDS, edit, motd, start_configuring};
use crate::common::{Gate, Lab, Running, TIMEOUTS, assert_nothing_is_left, lacks, node, wait_until};

/// Two nodes, the second of which waits for the first.
fn one_after_the_other() -> Lab {
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a"), &format!("{}, depends_on: [a]", node("b"))]);
    lab.orch(CREATE).ends_with(0);
    edit(&lab);
    lab
}

/// Interrupts a run, and comes back when it has said that it stops.
fn interrupt(run: &Running) {
    run.signal(Signal::INT);
    wait_until("the interrupt was taken", || run.said().contains("nothing new is begun"));
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
    interrupt(&create);
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
fn a_destroy_that_waits_to_tidy_up_can_be_cut_off() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a")]);
    let places = lab.machine(".places");
    fs::create_dir_all(places.parent().unwrap()).unwrap();
    let lock = fs::File::create(&places).unwrap();
    lock.lock().unwrap();
    let destroy = lab.start(DESTROY);
    let held = |pid: i32| fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let waits =
        || held(destroy.pid()).any(|file| fs::read_link(file.path()).is_ok_and(|file| file == places));
    wait_until("the destroy waits for the lock", waits);
    interrupt(&destroy);
    let began = Instant::now();
    destroy.signal(Signal::INT);
    destroy.end().ends_with(0).says("what earlier runs left could not be removed: it was cut off");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    drop(lock);
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn the_second_interrupt_cuts_running_steps_off_and_there_is_a_report_all_the_same() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = one_after_the_other();
    let gate = Gate::hold(&lab, "lab-a");
    let create = start_configuring(&lab, &gate);
    interrupt(&create);
    create.signal(Signal::INT);
    let cut = create.end().ends_with(1);
    assert_eq!(cut.json()["interrupted"], true);
    assert_eq!([cut.node("a"), cut.node("b")].map(|node| node["status"].clone()), ["failed", "skipped"]);
    lab.orch("runs show latest").ends_with(0).says("interrupted");
    drop(gate);
    heal(&lab);
}
