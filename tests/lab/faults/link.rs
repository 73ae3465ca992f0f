//! A link that is cut and restored, as pulling and plugging a cable does.

use super::{CREATE, NEEDS, STATUS, edit, made, motd, start_configuring};
use crate::common::{Cable, Gate, Lab, Need, lacks, node, wait_until};

fn check(lab: &Lab, cable: &Cable, cut_off: &str, machine: &str) {
    cable.set("down");
    let status = lab.orch(STATUS);
    assert_eq!(status.node(cut_off)["condition"], "unreachable", "{}", status.stdout);
    edit(lab);
    let failed = lab.orch(&format!("{CREATE} --only {cut_off}"));
    assert!([1, 4].contains(&failed.code), "{}", failed.stdout);
    assert_eq!(failed.node(cut_off)["status"], "failed");
    assert_eq!(motd(lab, machine), "as wanted");

    cable.set("up");
    lab.orch(CREATE).ends_with(0);
    assert_eq!(motd(lab, machine), "as wanted now");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
}

const BRIEF: &str = "timeouts: { create: 30s, boot: 2s, config: 4s, destroy: 20s }";

#[test]
fn a_node_whose_link_is_cut_is_unreachable_and_is_configured_once_it_is_restored() {
    if lacks(&[NEEDS[0], NEEDS[1], Need::Program("nsenter"), Need::Program("ip")]) {
        return;
    }
    let lab = Lab::with_nodes(BRIEF, &[&node("a")]);
    lab.orch(CREATE).ends_with(0);
    let uplink = lab.root("lab-a").join("run/orch/uplink");
    check(&lab, &Cable::in_network(uplink.display().to_string()), "a", "lab-a");
}

#[test]
fn a_link_that_is_cut_while_a_node_is_configured_and_restored_in_time_does_no_harm() {
    if lacks(&[NEEDS[0], NEEDS[1], Need::Program("nsenter"), Need::Program("ip")]) {
        return;
    }
    let lab = made(&["a"]);
    edit(&lab);
    let cable = Cable::in_network(lab.root("lab-a").join("run/orch/uplink").display().to_string());
    let gate = Gate::hold(&lab, "lab-a");
    let create = start_configuring(&lab, &gate);
    cable.set("down");
    // The node goes on by itself, and has an answer that cannot reach anybody.
    drop(gate);
    wait_until("the node has done its work", || motd(&lab, "lab-a") == "as wanted now");
    cable.set("up");
    create.end().ends_with(0).every_node_is("changed");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
}

#[test]
fn a_link_that_is_cut_inside_of_a_parent_cuts_off_the_child_alone() {
    if lacks(&[NEEDS[0], NEEDS[1], Need::Program("nsenter"), Need::Program("ip")]) {
        return;
    }
    let house = node("house").replace("type: vm", "type: pve");
    let lab = Lab::with_nodes(BRIEF, &[&house, &format!("{}, parent: house", node("child"))]);
    lab.orch(CREATE).ends_with(0);
    let network = format!("/proc/{}/ns/net", lab.init("lab-house").unwrap());
    let cable = Cable::in_network(network);
    cable.set("down");
    let status = lab.orch(STATUS).ends_with(2);
    assert_eq!(status.node("house")["condition"], "as-wanted", "{}", status.stdout);
    check(&lab, &cable, "child", "lab-child");
}
