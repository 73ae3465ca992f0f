//! Starting the node anew, by whoever is its first process.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::error::SystemError;
use super::places::has_our_init;
use crate::node::Node;

const LIMIT: Duration = Duration::from_secs(30);

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
