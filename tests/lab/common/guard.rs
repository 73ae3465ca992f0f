//! Ends every machine of a lab when its test ends, however it ends: a process of its own waits for that.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use super::leaks::control_groups;
use super::processes::speaking_of;

/// Names the folder for the process that waits.
const FOLDER: &str = "ORCH_LAB_GUARDS";

/// The process that waits; it is told by the end of its standard input.
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// Has everything ended that lives in a lab's folder, and the folder removed, when this is dropped or its process dies.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["common::guard::a_guard_ends_what_its_lab_left", "--exact", "--nocapture"]);
        // A group of its own: whoever ends all of the tests' group at once does not mean the one that tidies up after them.
        command.process_group(0);
        command.env(FOLDER, folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn a_guard_ends_what_its_lab_left() {
    // Among the tests, this does nothing; as a process of its own, it is the guard.
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let folder = Path::new(&folder);
    let groups = groups_of(folder);
    // Whatever is being started right now is there in a moment.
    for _ in 0..100 {
        end_processes(folder);
        for group in &groups {
            end_members(Path::new(group));
        }
        let is_gone = fs::remove_dir_all(folder).is_ok() || !folder.exists() || remove_as_them(folder);
        let are_gone = groups.iter().all(|group| remove_group(Path::new(group)));
        if is_gone && are_gone {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Kills what is in a control group: the first process of a machine with an init of its own does not say whose it is.
fn end_members(group: &Path) {
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for pid in members.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        let _ = kill_process(pid, Signal::KILL);
    }
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            end_members(&entry.path());
        }
    }
}

/// Removes a control group with those inside of it, as a systemd makes them; whether it is gone.
fn remove_group(group: &Path) -> bool {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    fs::remove_dir(group).is_ok() || !group.exists()
}

/// Removes files of users that exist only inside of machines, for a user that is not root.
fn remove_as_them(folder: &Path) -> bool {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--map-auto", "rm", "-rf", "--"]).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Kills everything that was started for this folder: drivers, connections, and the first processes of machines, and
/// with those everything in the machines.
fn end_processes(folder: &Path) {
    for pid in speaking_of(&folder.display().to_string()) {
        let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// How deep below a folder machines are: those of a lab are kept by a host that is kept by a state directory.
const DEPTH: usize = 7;

/// The control groups of the machines in a folder, by their marks.
fn groups_of(folder: &Path) -> Vec<String> {
    let mut marks = Vec::new();
    find_marks(folder, DEPTH, &mut marks);
    let all = control_groups();
    all.into_iter().filter(|group| marks.iter().any(|mark| group.ends_with(mark.as_str()))).collect()
}

/// The marks of the machines in a folder and below it, but not of what is inside of machines.
pub(crate) fn find_marks(folder: &Path, depth: usize, marks: &mut Vec<String>) {
    if let Ok(text) = fs::read(folder.join("machine.json")) {
        let record: Json = serde_json::from_slice(&text).unwrap_or_default();
        marks.extend(record["marks"]["uuid"].as_str().map(str::to_owned));
        return;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        find_marks(&entry.path(), depth - 1, marks);
    }
}
