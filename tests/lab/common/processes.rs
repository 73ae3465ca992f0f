//! The processes of a lab's machines, by their command lines.

use std::fs;

use super::Lab;
use super::running::is_alive;

/// The first processes of a machine: one where it runs, and more only where something is wrong.
pub(crate) fn inits(lab: &Lab, machine: &str) -> Vec<i32> {
    let words = format!("__local init {} ", lab.machine(machine).display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(&words) && is_alive(pid) {
            found.push(pid);
        }
    }
    found
}
