//! What tells why a system was not kept, gathered before anything is taken back: afterwards it is gone.

use std::time::Duration;

use super::places::Places;
use super::{activate, nix};
use crate::node::Node;

const LIMIT: Duration = Duration::from_secs(10);
/// How many lines are kept of one kind.
const MOST_LINES: usize = 30;
const LONGEST_LINE: usize = 300;
/// A node with less than this is told to be full.
const LITTLE_ROOM: u64 = 16 << 20;

/// Gathers it. What cannot be had is left out.
pub(super) fn gather(node: &Node, places: &Places, said: &[String], unhealthy: &[String]) -> Vec<String> {
    let mut evidence: Vec<String> = unhealthy.iter().map(|check| format!("health: {check}")).collect();
    evidence.extend(failed_units(node).into_iter().map(|unit| format!("unit: {unit}")));
    let free = nix::free(places);
    if free < LITTLE_ROOM {
        evidence.push(format!("disk: {} KiB are left where the store is", free >> 10));
    }
    // Whoever took over from another has only the log.
    let lines = if said.is_empty() { activate::last_lines(places, MOST_LINES) } else { said.to_vec() };
    let last = &lines[lines.len().saturating_sub(MOST_LINES)..];
    evidence.extend(last.iter().filter(|line| !line.trim().is_empty()).map(|line| format!("log: {line}")));
    evidence.iter().map(|line| short(line)).collect()
}

fn failed_units(node: &Node) -> Vec<String> {
    let systemctl = node.tool("systemctl").filter(|_| node.has("/run/systemd/system"));
    let args = ["list-units", "--failed", "--plain", "--no-legend", "--no-pager", "--full"];
    let Some(Ok(said)) = systemctl.map(|systemctl| systemctl.need(&args, &[], LIMIT)) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&said.stdout);
    text.lines().take(MOST_LINES).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn short(line: &str) -> String {
    orch_model::printable(line).to_string().chars().take(LONGEST_LINE).collect()
}
