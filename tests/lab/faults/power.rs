//! Power cuts: a machine's first process is killed, and everything in the machine with it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use super::{CREATE, DESTROY, NEEDS, STATUS, cut_power, edit, made, motd, start_configuring};
use crate::common::{
    Gate, Lab, ORCH, Outcome, TIMEOUTS, Timeline, assert_nothing_is_left, inits, lacks, node, skip,
    wait_until,
};

#[test]
fn a_node_that_lost_its_power_is_seen_as_stopped_and_started_again_with_its_disk_intact() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a"]);
    let kept = lab.root("lab-a").join("var/lib/kept");
    fs::write(&kept, "kept").unwrap();
    fs::File::open(&kept).unwrap().sync_all().unwrap();
    cut_power(&lab, "lab-a");

    let status = lab.orch(STATUS).ends_with(1).every_node_is("stopped");
    assert_eq!(status.node("a")["state"], "stopped");
    lab.orch("exec -M lab -H father -- true").ends_with(1);
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    assert_eq!(fs::read_to_string(lab.root("lab-a").join("var/lib/kept")).unwrap(), "kept");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch(CREATE).ends_with(0).every_node_is("unchanged");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn a_node_that_loses_its_power_while_it_is_configured_is_said_to_be_off_and_configured_by_the_next_run() {
    if lacks(&NEEDS) {
        return;
    }
    let lab =
        Lab::with_nodes("timeouts: { create: 30s, boot: 2s, config: 30s, destroy: 20s }", &[&node("a")]);
    lab.orch(CREATE).ends_with(0);
    edit(&lab);
    let gate = Gate::hold(&lab, "lab-a");
    let create = start_configuring(&lab, &gate);
    cut_power(&lab, "lab-a");
    drop(gate);
    let failed = create.end().ends_with(1).says("it does not run").every_node_is("failed");
    assert_eq!(failed.node("a")["timed_out"], false);
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    assert_eq!(motd(&lab, "lab-a"), "as wanted now");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn when_every_machine_of_a_host_is_killed_all_are_started_again_parents_first() {
    if lacks(&NEEDS) {
        return;
    }
    let child = format!("{}, parent: house", node("child"));
    let house = node("house").replace("type: vm", "type: pve");
    let lab = Lab::with_nodes(TIMEOUTS, &[&house, &child, &node("peer")]);
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    for machine in ["lab-peer", "lab-child", "lab-house"] {
        cut_power(&lab, machine);
    }
    lab.orch(STATUS).ends_with(1).every_node_is("stopped");
    let started = lab.orch(CREATE).ends_with(0).every_node_is("changed");
    Timeline::of(&started.json()).assert_in_order(&[("house", "start"), ("child", "start")]);
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    for machine in ["lab-house", "lab-child", "lab-peer"] {
        assert_eq!(inits(&lab, machine), [lab.init(machine).unwrap()]);
    }
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn a_machine_whose_starter_was_killed_before_it_wrote_that_it_was_done_shares_its_network_all_the_same() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a"]);
    let boot = lab.machine("lab-a").join("boot.json");
    let written = fs::read_to_string(&boot).unwrap();
    assert!(written.contains("\"ready\": true"), "{written}");
    fs::write(&boot, written.replace("\"ready\": true", "\"ready\": false")).unwrap();
    lab.write_nodes(TIMEOUTS, &[&node("a"), &node("b")]);
    lab.orch(CREATE).ends_with(0);
    let network =
        |machine: &str| fs::metadata(lab.root(machine).join("run/orch/uplink")).map(|about| about.ino());
    assert_eq!(network("lab-a").unwrap(), network("lab-b").unwrap(), "a host has one network");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

/// A control group of a machine that its init can divide, and a controller to divide it by.
fn divisible(lab: &Lab, machine: &str) -> Option<(PathBuf, String)> {
    let boot = fs::read_to_string(lab.machine(machine).join("boot.json")).unwrap();
    let boot: serde_json::Value = serde_json::from_str(&boot).unwrap();
    let groups =
        boot["cgroups"].as_array().unwrap().iter().map(|group| PathBuf::from(group.as_str().unwrap()));
    groups.into_iter().find_map(|group| {
        let controllers = fs::read_to_string(group.join("cgroup.controllers")).ok()?;
        Some((group, controllers.split_whitespace().next()?.to_owned()))
    })
}

#[test]
fn a_machine_whose_init_divided_its_control_group_is_entered_and_started_again() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a"]);
    let Some((group, controller)) = divisible(&lab, "lab-a") else {
        return skip("the unified hierarchy of this computer has no controllers");
    };
    // What a systemd does that is the first process of a machine.
    let own = group.join("system");
    fs::create_dir(&own).unwrap();
    wait_until("all of it is in a group of its own", || {
        let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap();
        // One may end meanwhile.
        processes.lines().for_each(|pid| drop(fs::write(own.join("cgroup.procs"), pid)));
        processes.is_empty()
    });
    fs::write(group.join("cgroup.subtree_control"), format!("+{controller}")).unwrap();
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let refused = fs::write(group.join("cgroup.procs"), sleeper.id().to_string());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ResourceBusy);

    let mut enter = Command::new(ORCH);
    enter.args(["__local", "enter"]).arg(lab.machine("lab-a")).arg("true");
    Outcome::of(&mut enter, "enter").ends_with(0);
    cut_power(&lab, "lab-a");
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn a_child_goes_down_with_its_parent_and_both_come_back() {
    if lacks(&NEEDS) {
        return;
    }
    let child = format!("{}, parent: house", node("child"));
    let house = node("house").replace("type: vm", "type: pve");
    let lab = Lab::with_nodes(TIMEOUTS, &[&house, &child]);
    lab.orch(CREATE).ends_with(0);
    cut_power(&lab, "lab-house");
    wait_until("the child is off, too", || inits(&lab, "lab-child").is_empty());
    lab.orch(STATUS).ends_with(1).every_node_is("stopped");
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}
