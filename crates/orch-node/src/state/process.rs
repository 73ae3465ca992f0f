//! What the kernel says of a process: when it started, and in whose session it is.
//!
//! With its number the start names one process for ever, because numbers are given again.

use std::fs;

/// When a process started, in clock ticks since boot; nothing where there is no such process.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let fields = fields_of(pid)?;
    let is_dead = matches!(fields.first()?.as_str(), "Z" | "X");
    if is_dead { None } else { fields.get(19)?.parse().ok() }
}

/// The session that a process is in, named for the process that began it.
pub(crate) fn session_of(pid: u32) -> Option<u32> {
    fields_of(pid)?.get(3)?.parse().ok()
}

/// Whether the process with this number is the one that started then.
pub(crate) fn is_alive(pid: u32, started: u64) -> bool {
    start_of(pid) == Some(started)
}

/// The fields of a process's state that come after its name, of which the first is how it fares.
fn fields_of(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses, and may itself hold any character.
    let (_, after_name) = stat.rsplit_once(')')?;
    Some(after_name.split_whitespace().map(String::from).collect())
}
