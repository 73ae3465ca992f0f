//! Starting the node anew, by whoever is its first process.

use std::time::Duration;

use orch_model::StorePath;
use rustix::process::{Pid, Signal, kill_process};

use super::error::SystemError;
use super::places::{Places, has_our_init};
use crate::node::Node;

const LIMIT: Duration = Duration::from_secs(30);

/// What a NixOS system has for bringing to its end what a reboot interrupted.
const UNIT: &str = "etc/systemd/system/orch-node-rollout.service";

/// Whether somebody goes on with a rollout once this system is booted.
pub(super) fn is_looked_after(places: &Places, system: &StorePath) -> bool {
    has_our_init() || places.at(system.as_str()).join(UNIT).exists()
}

/// Has the node start anew. This comes back before it has.
pub(super) fn reboot(node: &Node) -> Result<(), SystemError> {
    if node.has("/run/systemd/system")
        && let Some(control) = node.tool("systemctl")
    {
        control.need(&["reboot"], &[], LIMIT)?;
        return Ok(());
    }
    if node.is_real() && has_our_init() {
        return kill_process(Pid::INIT, Signal::INT).map_err(SystemError::file("reboot", "/".as_ref()));
    }
    Err(SystemError::NoReboot)
}
