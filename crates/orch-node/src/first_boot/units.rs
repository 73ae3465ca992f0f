//! What is said to systemd on a machine that has our own init instead. That one runs the SSH server and whatever fetches the
//! node's configuration, and needs no unit for either.

use rustix::process::{Pid, Signal, kill_process};

use super::ssh_restart;
use crate::error::ApplyError;
use crate::node::Node;
use crate::pull::UNIT_NAME;
use crate::resource::SHARES_PROGRAMS;
use crate::systemd::Systemd;

/// Whether whoever speaks to systemd is heard. On a machine with neither systemd nor our init nobody is.
pub(super) fn has_systemd(node: &Node) -> bool {
    Systemd::of(node).is_some() || !node.has(SHARES_PROGRAMS)
}

/// Does what `systemctl` with these words would do.
pub(super) fn change(node: &Node, words: &[&str]) -> Result<(), ApplyError> {
    let (options, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    let Some((verb, units)) = words.split_first() else { return Ok(()) };
    if *verb == "daemon-reload" {
        return Ok(());
    }
    units.iter().try_for_each(|unit| change_one(node, verb, unit, options.contains(&"--now")))
}

fn change_one(node: &Node, verb: &str, unit: &str, now: bool) -> Result<(), ApplyError> {
    let starts = matches!(verb, "start" | "restart" | "reload-or-restart") || (verb == "enable" && now);
    let name = unit.strip_suffix(".service").unwrap_or(unit);
    match (verb, name) {
        // What is to run is looked for at every start of the machine.
        ("enable", _) if !starts && is_known(name) => Ok(()),
        ("reload" | "restart" | "reload-or-restart", "ssh" | "sshd") => ssh_restart::restart(node),
        (_, "ssh" | "sshd") if starts => Ok(()),
        (_, name) if starts && Some(name) == UNIT_NAME.strip_suffix(".service") => {
            kill_process(Pid::INIT, Signal::HUP).map_err(ApplyError::file("tell", "init".as_ref()))
        }
        _ => Err(ApplyError::Impossible(format!("there is no systemd here that could {verb} `{unit}`"))),
    }
}

fn is_known(name: &str) -> bool {
    matches!(name, "ssh" | "sshd") || Some(name) == UNIT_NAME.strip_suffix(".service")
}
