//! The SSH server of the node: whether there is one, and how it is told of changes.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::ApplyError;
use crate::node::Node;
use crate::resource::SHARES_PROGRAMS;
use crate::systemd::Systemd;
use crate::tool::Tool;

/// Where this exists, the init of a local node runs the SSH server.
pub(crate) const WANTED: &str = "/run/orch/sshd-wanted";
const PID_FILE: &str = "/run/sshd.pid";

/// Whether the node has an SSH server that is set up.
pub(crate) fn is_here(node: &Node) -> bool {
    program(node).is_some() && node.has("/etc/ssh/sshd_config")
}

/// The server's program. A node that shares its machine's programs has it too, and need not run it.
pub(crate) fn program(node: &Node) -> Option<Tool> {
    let is_wanted = !node.has(SHARES_PROGRAMS) || node.has(WANTED);
    if is_wanted { node.tool("sshd") } else { None }
}

/// The server refuses to start, and to judge a configuration, where this folder is missing.
pub(crate) fn make_run_folder(node: &Node) -> Result<(), ApplyError> {
    node.make_folder(Path::new("/run/sshd"), 0o755).map(drop)
}

/// Tells the running server to read its configuration again. Connections go on.
pub(crate) fn reload(node: &Node) -> Result<(), ApplyError> {
    if let Some(systemd) = Systemd::of(node) {
        return reload_unit(&systemd);
    }
    match running().filter(|_| node.is_real()) {
        Some(pid) => kill_process(pid, Signal::HUP).map_err(ApplyError::file("tell", Path::new("sshd"))),
        None => Ok(()),
    }
}

/// Its unit is called `ssh` by some and `sshd` by others. One that does not run reads the file when it starts.
fn reload_unit(systemd: &Systemd) -> Result<(), ApplyError> {
    for unit in ["ssh.service", "sshd.service"] {
        let state = systemd.state(unit)?;
        if state.is_known() && state.runs() {
            return systemd.change(&["reload"], unit);
        }
    }
    Ok(())
}

/// The process that the server's file names, where it really is the server.
pub(crate) fn running() -> Option<Pid> {
    let pid: i32 = fs::read_to_string(PID_FILE).ok()?.trim().parse().ok()?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let pid = Pid::from_raw(pid.max(0))?;
    (name.trim_end() == "sshd").then_some(pid)
}
