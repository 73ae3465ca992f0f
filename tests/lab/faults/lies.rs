//! Nodes that put something else where orch looks: it is never led out of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{CREATE, DESTROY, NEEDS, cut_power, made};
use crate::common::{Need, Outcome, TIMEOUTS, assert_nothing_is_left, lacks, node};

/// The interfaces of this computer itself.
fn interfaces() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_node_that_shows_this_computers_network_as_the_hosts_leads_nobody_there() {
    if lacks(&[NEEDS[0], NEEDS[1], Need::Program("nsenter")]) {
        return;
    }
    let lab = made(&["a"]);
    let (root, init) = (lab.root("lab-a"), lab.init("lab-a").unwrap().to_string());
    let mut cover = Command::new("nsenter");
    cover.args(["-t", &init, "-m", "mount", "-t", "tmpfs", "lie", "/run/orch"]);
    Outcome::of(&mut cover, "covering the truth").ends_with(0);
    symlink(format!("/proc/{}/ns/net", std::process::id()), root.join("run/orch/uplink")).unwrap();

    let before = interfaces();
    lab.write_nodes(TIMEOUTS, &[&node("a"), &node("b")]);
    // The liar is not reached any more, and the new one gets a network that nobody lied about.
    lab.orch("create -M lab -H father --only b --json").ends_with(0);
    assert_eq!(before, interfaces(), "nothing was attached to this computer");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn a_node_that_puts_links_into_its_own_root_does_not_come_up_along_them() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a"]);
    let outside = lab.site.join("outside");
    fs::create_dir(&outside).unwrap();
    // The disk is seen from outside while the node runs; what is mounted in the place must be let go of first.
    let init = lab.init("lab-a").unwrap().to_string();
    let mut plant = Command::new("nsenter");
    let link = outside.display().to_string();
    let words = [
        "-t",
        &init,
        "-m",
        "sh",
        "-c",
        "umount -l /var/lib/dpkg; rmdir /var/lib/dpkg; mv /var/lib /var/lib.old; ln -s \"$0\" /var/lib",
        &link,
    ];
    plant.args(words);
    Outcome::of(&mut plant, "planting a link").ends_with(0);
    cut_power(&lab, "lab-a");
    lab.orch(CREATE).ends_with(1).says("something else lies there");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing was made out there");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}
