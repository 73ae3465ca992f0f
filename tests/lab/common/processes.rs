//! The processes of a lab, by their command lines.

use std::fs;

use super::Lab;

/// The first processes of a machine: one where it runs, and more only where something is wrong.
pub(crate) fn inits(lab: &Lab, machine: &str) -> Vec<i32> {
    speaking_of(&format!("__local init {} ", lab.machine(machine).display()))
}

/// The processes whose command lines have these words, this one left out.
pub(crate) fn speaking_of(words: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let speaks = |pid: &i32| *pid != own && command_of(*pid).contains(words);
    all().into_iter().filter(speaks).collect()
}

/// Every process that lives.
pub(crate) fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_alive(*pid)).collect()
}

/// The words that a process was started with.
pub(crate) fn command_of(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// Whether a process runs: neither gone nor dead.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
}
