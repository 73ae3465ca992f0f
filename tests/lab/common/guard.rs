//! Ends every machine of a lab when its test ends, however it ends: a process of its own waits for that.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

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
    // What is being started right now has the lock of its folder, and is there in a moment.
    for _ in 0..20 {
        end_machines(folder);
        if fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn end_machines(folder: &Path) {
    let hosts = fs::read_dir(folder.join("state/local")).into_iter().flatten().flatten();
    for machine in hosts.flat_map(|host| fs::read_dir(host.path()).into_iter().flatten().flatten()) {
        let boot = fs::read(machine.path().join("boot.json")).ok();
        let Some(boot) = boot.and_then(|text| serde_json::from_slice::<Json>(&text).ok()) else { continue };
        if is_alive(&boot["init"]) {
            let pid = boot["init"]["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
        for group in boot["cgroups"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            for _ in 0..100 {
                if fs::remove_dir(group).is_ok() || !Path::new(group).exists() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
}

/// Whether a process is still the one that was written down: pids are used again.
fn is_alive(init: &Json) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", init["pid"])).unwrap_or_default();
    let started =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse::<u64>().ok());
    started.is_some() && started == init["started"].as_u64()
}
