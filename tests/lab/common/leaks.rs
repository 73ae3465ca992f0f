//! What a machine could leave behind on this computer.

use std::fs;
use std::path::Path;

use super::Lab;

/// Asserts that nothing of a lab's machines is left: no process, mount, interface, control group or file.
#[track_caller]
pub(crate) fn assert_nothing_is_left(lab: &Lab) {
    let left = leaks(lab);
    assert!(left.is_empty(), "this is left behind: {left:#?}");
}

/// Everything that is left.
pub(crate) fn leaks(lab: &Lab) -> Vec<String> {
    let mut left = Vec::new();
    let state = lab.state.to_string_lossy().into_owned();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(&state) {
            left.push(format!("process {}: {command}", entry.file_name().display()));
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    left.extend(mounts.lines().filter(|line| line.contains(&state)).map(|line| format!("mount {line}")));
    files(&lab.state.join("local"), &mut left);
    left.extend(loop_devices(&state));
    left.extend(groups(Path::new("/sys/fs/cgroup"), 3).into_iter().filter(|group| is_of(group, lab)));
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

/// The control groups of machines.
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
