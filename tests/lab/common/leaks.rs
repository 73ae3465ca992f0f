//! What a machine could leave behind on this computer.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::processes::{command_of, speaking_of};
use super::{Lab, Need, TIMEOUTS, lacks, node};

/// Asserts that nothing of a lab's machines is left: no process, mount, interface, control group or file.
#[track_caller]
pub(crate) fn assert_nothing_is_left(lab: &Lab) {
    let left = leaks(lab);
    assert!(left.is_empty(), "this is left behind: {left:#?}");
}

/// The same after a driver was killed: what it had started ends by itself, a moment later.
#[track_caller]
pub(crate) fn assert_nothing_stays(lab: &Lab) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !leaks(lab).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_nothing_is_left(lab);
}

/// Everything that is left.
pub(crate) fn leaks(lab: &Lab) -> Vec<String> {
    let mut left = Vec::new();
    let state = lab.state.to_string_lossy().into_owned();
    left.extend(speaking_of(&state).into_iter().map(|pid| format!("process {pid}: {}", command_of(pid))));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    left.extend(mounts.lines().filter(|line| line.contains(&state)).map(|line| format!("mount {line}")));
    files(&lab.state.join("local"), &mut left);
    left.extend(loop_devices(&state));
    left.extend(control_groups().into_iter().filter(|group| is_of(group, lab)));
    left
}

fn files(folder: &Path, left: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        left.push(format!("file {}", entry.path().display()));
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), left);
        }
    }
}

fn loop_devices(state: &str) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").unwrap().flatten();
    let backing =
        devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    backing
        .filter(|file| file.contains(state))
        .map(|file| format!("loop device of {}", file.trim()))
        .collect()
}

/// The control groups of every machine on this computer, whoever's it is.
pub(crate) fn control_groups() -> Vec<String> {
    groups(Path::new("/sys/fs/cgroup"), 3)
}

fn groups(folder: &Path, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("orch-") {
            found.push(entry.path().display().to_string());
        } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(groups(&entry.path(), depth - 1));
        }
    }
    found
}

/// Whether a control group belongs to a machine that this lab's journals speak of: other tests run at the same time.
fn is_of(group: &str, lab: &Lab) -> bool {
    let Some((_, uuid)) = group.rsplit_once("orch-") else { return false };
    let journals = fs::read_dir(lab.state.join("runs")).into_iter().flatten().flatten();
    journals.filter_map(|journal| fs::read_to_string(journal.path()).ok()).any(|text| text.contains(uuid))
}

#[test]
fn the_check_for_leaks_sees_every_kind_of_thing_that_a_machine_is_made_of() {
    if lacks(&[Need::Root]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a")]);
    lab.orch("create -M lab -H father").ends_with(0);
    let seen = leaks(&lab);
    let is_seen = |kind: &str| seen.iter().any(|leak| leak.starts_with(kind));
    assert!(is_seen("process ") && is_seen("file "), "{seen:#?}");
    let folder = lab.machine("lab-a");
    let boot = fs::read_to_string(folder.join("boot.json")).unwrap();
    assert_eq!(is_seen("/sys/fs/cgroup"), boot.contains("/sys/fs/cgroup"), "{seen:#?}");
    assert_eq!(is_seen("loop device"), folder.join("disk.img").exists(), "{seen:#?}");
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(&lab);
}
