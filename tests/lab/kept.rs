//! Connections that are kept for the next command: used again, never mistaken, and gone with their nodes.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::{
    Lab, Need, Outcome, assert_nothing_stays, is_alive, kill, lacks, speaking_of, wait_until,
};

const ABOUT: &str = "-M nested-test -H father";

/// Runs a command that keeps its connections, as it does for everybody who says nothing about it.
fn orch(lab: &Lab, verb: &str) -> Outcome {
    let words = verb.replace("NESTED", ABOUT);
    Outcome::of(lab.command(&words).env_remove("ORCH_KEEP_CONNECTIONS"), &words)
}

/// How often somebody logged in to a node.
fn logins(lab: &Lab, machine: &str) -> usize {
    let log = fs::read_to_string(lab.root(machine).join("var/log/sshd.log")).unwrap();
    log.matches("Accepted publickey").count()
}

/// The clients of a lab that hold connections.
fn clients(lab: &Lab) -> Vec<i32> {
    speaking_of(&format!("{}/ssh/", lab.state.display()))
}

#[test]
fn the_next_command_uses_the_connection_of_the_last_and_none_outlives_its_node() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let lab = Lab::with_sample_site();
    orch(&lab, "create NESTED").ends_with(0);
    assert!(!clients(&lab).is_empty(), "connections are kept");
    let machines = ["nested-test-inner-pve", "nested-test-test-vm"];
    let before = machines.map(|machine| logins(&lab, machine));
    orch(&lab, "exec NESTED -- true").ends_with(0);
    orch(&lab, "status NESTED").ends_with(0);
    assert_eq!(machines.map(|machine| logins(&lab, machine)), before, "nobody logged in anew");

    orch(&lab, "destroy NESTED --yes").ends_with(0);
    assert_nothing_stays(&lab);
}

#[test]
fn a_connection_to_a_machine_that_was_started_anew_is_made_anew_at_once() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let lab = Lab::with_sample_site();
    orch(&lab, "create NESTED").ends_with(0);
    let init = lab.init("nested-test-inner-pve").unwrap();
    kill(init, Signal::KILL);
    wait_until("the machine is off", || !is_alive(init));
    let began = Instant::now();
    orch(&lab, "exec NESTED -- true").ends_with(1);
    orch(&lab, "create NESTED").ends_with(0);
    orch(&lab, "exec NESTED -- true").ends_with(0);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "nobody waited for what was gone: {took:?}");
    orch(&lab, "destroy NESTED --yes").ends_with(0);
    // A machine whose power was cut said nothing to its clients: they find out by asking for a sign of life.
    wait_until("its clients have ended", || clients(&lab).is_empty());
    assert_nothing_stays(&lab);
}
