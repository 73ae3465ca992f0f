//! Disks that are full: a node's, and the one that the machines are kept on.

use std::fs::{self, File};
use std::process::Command;

use rustix::fs::{FallocateFlags, fallocate};

use super::{CREATE, NEEDS, STATUS, made, motd};
use crate::common::{Lab, Need, ORCH, Outcome, TIMEOUTS, assert_nothing_is_left, lacks, node, skip, spec};

/// Takes all the room that there is, to the last block.
fn fill(file: &File) {
    let (mut end, mut piece) = (0, 1_u64 << 28);
    while piece >= 512 {
        match fallocate(file, FallocateFlags::empty(), end, piece) {
            Ok(()) => end += piece,
            Err(_) => piece /= 2,
        }
    }
}

#[test]
fn a_node_whose_disk_is_full_says_so_keeps_its_old_files_whole_and_heals_once_there_is_room() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a"]);
    if !lab.machine("lab-a").join("disk.img").exists() {
        return skip("disks have no limit here");
    }
    let filler = lab.root("lab-a").join("var/filler");
    let file = File::create(&filler).unwrap();
    fill(&file);
    lab.write("specs/plain.yaml", &spec(&"as wanted, and much more than fits ".repeat(2000)));

    let failed = lab.orch(CREATE).ends_with(1).every_node_is("failed").says("No space left on device");
    assert_eq!(failed.node("a")["timed_out"], false);
    assert_eq!(motd(&lab, "lab-a"), "as wanted", "the old file is whole");
    let status = lab.orch(STATUS);
    assert_ne!(status.code, 0, "{}", status.stdout);

    drop(file);
    fs::remove_file(&filler).unwrap();
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    assert!(motd(&lab, "lab-a").starts_with("as wanted, and much more"));
    lab.orch(STATUS).ends_with(0);
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn where_nodes_could_read_the_keys_that_open_them_nothing_is_begun() {
    if lacks(&[Need::Root, Need::Program("unshare"), Need::Program("mount")]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a")]);
    // In a mount namespace of its own, a folder of programs is empty and can be written to.
    let script = "mount -t tmpfs none /opt && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
    command.arg(ORCH).arg("--site").arg(&lab.site).args(["--state", "/opt/orch"]);
    command.args(CREATE.split_whitespace());
    let refused = Outcome::of(&mut command, CREATE).ends_with(3);
    refused.says("would lie in `/opt`").says("nothing was touched").says("--state");
}

#[test]
fn where_machines_would_not_fit_nothing_is_begun() {
    if lacks(&[Need::Root, Need::Program("unshare"), Need::Program("mount")]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a")]);
    // In a mount namespace of its own, the state directory is a small disk.
    let script = "mount -t tmpfs -o size=8m none \"$1\"; shift; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).arg(&lab.state);
    command.arg(ORCH).arg("--site").arg(&lab.site).arg("--state").arg(&lab.state);
    command.args(CREATE.split_whitespace());
    let refused = Outcome::of(&mut command, CREATE).ends_with(3);
    refused.says("MB left").says("nothing was touched").says("make room");
    assert_nothing_is_left(&lab);
}
