//! When a process started: with its number that names one process for ever, because numbers are given again.

use std::fs;

/// When a process started, in clock ticks since boot; nothing where there is no such process.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may itself hold any character.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    if is_dead { None } else { fields.nth(18)?.parse().ok() }
}

/// Whether the process with this number is the one that started then.
pub(crate) fn is_alive(pid: u32, started: u64) -> bool {
    start_of(pid) == Some(started)
}
