//! Given what it needs to fetch its configuration while it runs: the node keeps it, and begins at once.

use std::ffi::OsStr;
use std::path::Path;

use orch_model::pull::Enrolment;
use rustix::process::{Pid, Signal, kill_process};

use super::memory::ENROLMENT_NAME;
use super::{UNIT_NAME, look_again, unit};
use crate::error::ApplyError;
use crate::node::{Node, Owner, Wanted};
use crate::resource::SHARES_PROGRAMS;
use crate::state::{Puller, State};
use crate::systemd::Systemd;

const UNITS: &str = "/etc/systemd/system";

/// Keeps an enrolment in place of the one before, and has whoever fetches for this node use it now. On a tree of files there
/// is nobody to do so.
pub(crate) fn enrol(node: &Node, enrolment: &Enrolment) -> Result<(), ApplyError> {
    let state = State::make(node)?;
    state.write_for_good(ENROLMENT_NAME, enrolment)?;
    if !node.is_real() {
        return Ok(());
    }
    if let Some(systemd) = Systemd::of(node) {
        have_systemd_run_it(node, &systemd)?;
    } else if node.has(SHARES_PROGRAMS) {
        // Our own init looks again.
        kill_process(Pid::INIT, Signal::HUP).map_err(ApplyError::file("tell", "init".as_ref()))?;
    }
    // Who runs already has to be told; who is just being started reads it anyway.
    Puller::find(&state)?.filter(|puller| puller.stays).map(|puller| look_again(&puller));
    Ok(())
}

fn have_systemd_run_it(node: &Node, systemd: &Systemd) -> Result<(), ApplyError> {
    let program =
        std::env::current_exe().map_err(ApplyError::file("find", super::super::push::SELF.as_ref()))?;
    let text = unit(&program.to_string_lossy());
    let folder = node.make_folder(Path::new(UNITS), 0o755)?;
    let wanted = Wanted { content: text.as_bytes(), mode: 0o644, owner: Owner::ROOT };
    if folder.difference(OsStr::new(UNIT_NAME), &wanted)?.is_some() {
        folder.write(OsStr::new(UNIT_NAME), &wanted)?;
        systemd.read_units_again()?;
    }
    systemd.change(&["enable", "--now"], UNIT_NAME)
}
