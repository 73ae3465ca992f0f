//! The one who applies, with the lock in hand: in a process of its own when pushed, so that it outlives the connection
//! that brought the configuration, or in this one.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orch_model::{ApplyReport, ApplyStatus, Config, Digest, Mode, ResourceReport};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use crate::apply::{Around, apply, failed};
use crate::error::{ApplyError, in_full};
use crate::node::Node;
use crate::state::{ApplyLock, State};

/// The exit code of a worker whose report could not be kept.
const NO_REPORT: u8 = 5;

/// Why a worker could not begin, or could not keep what it did.
#[derive(Debug, Error)]
pub(crate) enum WorkError {
    /// The state of the node cannot be used.
    #[error(transparent)]
    State(#[from] ApplyError),
    /// The system would not do it.
    #[error("the work cannot be {0}")]
    System(&'static str, #[source] io::Error),
}

/// Applies what was handed over, as the process that [`crate::push`] started. Its standard input is the lock.
pub(crate) fn work(node: &Node, digest: Digest, mode: Mode) -> ExitCode {
    // It fails only for the leader of a group, who is where this leads already.
    let _ = rustix::process::setsid();
    match apply_handed_over(node, digest, mode) {
        Ok(report) if report.status == ApplyStatus::Complete => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&in_full(&error));
            ExitCode::from(NO_REPORT)
        }
    }
}

fn apply_handed_over(node: &Node, digest: Digest, mode: Mode) -> Result<ApplyReport, WorkError> {
    let state = State::make(node)?;
    let lock = ApplyLock::inherited(&state).map_err(|error| WorkError::System("begun", error))?;
    apply_locked(node, &state, &lock, digest, mode)
}

/// Applies the configuration that was handed over, and keeps the report.
pub(crate) fn apply_locked(
    node: &Node,
    state: &State,
    lock: &ApplyLock,
    digest: Digest,
    mode: Mode,
) -> Result<ApplyReport, WorkError> {
    let cancelled = listen().map_err(|error| WorkError::System("made ready to be cancelled", error))?;
    lock.sign(digest).map_err(|error| WorkError::System("signed", error))?;
    let config = state.take_over(digest)?;
    let attempts = state.attempts(digest)?;
    begin(state, &config, mode, attempts)?;
    let is_cancelled = || cancelled.load(Ordering::Relaxed);
    let report = apply(node, &config, &Around { mode, attempts, tell: &tell, is_cancelled: &is_cancelled });
    state.keep(&report)?;
    Ok(report)
}

/// Until it is done, what was complete is no more: a cut from here on must not leave the node looking finished.
fn begin(state: &State, config: &Config, mode: Mode, attempts: u32) -> Result<(), WorkError> {
    if state.applied()? != Some(config.digest()) {
        state.keep(&failed(config, mode, attempts, "the work was begun and then cut short"))?;
    }
    Ok(())
}

/// A word from outside ends the work between two resources; the loss of a terminal does not.
fn listen() -> io::Result<Arc<AtomicBool>> {
    let cancelled = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, Arc::clone(&cancelled))?;
    signal_hook::flag::register(SIGINT, Arc::clone(&cancelled))?;
    signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)))?;
    Ok(cancelled)
}

/// One line for everything that is not simply as it was.
fn tell(report: &ResourceReport) {
    let what = format!("{} {}", report.kind, orch_model::printable(&report.name));
    match (&report.skipped, &report.detail) {
        (Some(why), _) => say(&format!("skipped {what}: {why}")),
        (None, Some(how)) if report.changed => say(&format!("changed {what}: {how}")),
        (None, Some(why)) => say(&format!("failed {what}: {why}")),
        (None, None) => {}
    }
}

/// Says a line to whoever follows. Nobody may be there any more, which is no reason to stop.
pub(crate) fn say(line: &str) {
    let line = orch_model::printable(line);
    let _ = writeln!(io::stderr(), "{line}");
}
