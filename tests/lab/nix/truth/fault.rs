//! What happens to those who watch over a rollout, from outside and at a moment that is read from the node.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::news::News;
use crate::common::{Cable, Lab, Running, all_processes, is_alive, kill, wait_until};

/// What is done to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing.
    None,
    /// The watcher on the node is killed.
    WatcherKilled,
    /// The driver is killed.
    DriverKilled,
    /// The link between driver and node is cut, until the node has come to its end.
    LinkCut,
}

impl Fault {
    pub(super) const ALL: [Self; 4] = [Self::None, Self::WatcherKilled, Self::DriverKilled, Self::LinkCut];
}

/// Kills the process on a node that works on the rollout, as its file names it.
pub(super) fn kill_watcher(lab: &Lab, machine: &str) {
    let init = lab.init(machine).unwrap();
    let text = fs::read(lab.root(machine).join("run/orch-rollout/watcher.json")).unwrap();
    let watcher: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let inside = watcher["pid"].as_i64().unwrap();
    // One that has come to its end needs nobody to end it.
    if let Some(pid) = outside(init, inside) {
        kill(pid, Signal::KILL);
        wait_until("the watcher is dead", || !is_alive(pid));
    }
}

/// The number that a process of a machine has out here.
fn outside(init: i32, inside: i64) -> Option<i32> {
    let space = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = space(init);
    let number = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.to_owned();
        line.split_whitespace().last()?.parse::<i64>().ok()
    };
    all_processes().into_iter().find(|pid| space(*pid) == own && number(*pid) == Some(inside))
}

/// Cuts the link to the only machine of a lab; the way to it is found by what the machine is attached to.
pub(super) fn cut_link(lab: &Lab, machine: &str) -> Cable {
    let cable = Cable::in_network(lab.root(machine).join("run/orch/uplink").display().to_string());
    cable.set("down");
    cable
}

/// Waits until the new system has done what it does.
pub(super) fn wait_until_it_did(root: &Path, driver: &mut Running) {
    wait_until("the new system is being activated", || {
        assert!(!driver.has_ended(), "the driver has ended before anything was activated: {}", driver.said());
        root.join("run/truth/did").exists()
    });
}

/// Waits until a node waits to be confirmed, or is past that.
pub(super) fn wait_until_it_waits(root: &Path) {
    wait_until("the node waits to be confirmed", || {
        News::of(root).is_some_and(|news| !["armed", "activating"].contains(&news.phase.as_str()))
    });
}
