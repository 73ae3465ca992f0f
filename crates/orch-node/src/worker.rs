//! The one who applies, with the lock in hand: in a process of its own when pushed, so that it outlives the connection
//! that brought the configuration, or in this one.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use orch_model::{ApplyReport, ApplyStatus, Config, Digest, Mode, ResourceReport};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use crate::apply::{Around, Stop, apply, failed};
use crate::error::{ApplyError, in_full};
use crate::health;
use crate::node::Node;
use crate::resource::Extent;
use crate::state::{ApplyLock, State};
use crate::vault;

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

/// On what terms a configuration is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Who brought it.
    pub(crate) mode: Mode,
    /// How long all of it may take.
    pub(crate) limit: Duration,
    /// How long of that the node may take to become healthy.
    pub(crate) health: Duration,
    /// How much of it is applied.
    pub(crate) extent: Extent,
}

/// Applies what was handed over, as the process that [`crate::push`] started. Its standard input is the lock, and to its
/// standard output goes the report: the one that is kept may be of somebody else by the time it is read.
pub(crate) fn work(node: &Node, digest: Digest, terms: Terms) -> ExitCode {
    // It fails only for the leader of a group, who is where this leads already.
    let _ = rustix::process::setsid();
    match apply_handed_over(node, digest, terms) {
        Ok(report) => {
            // Nobody may wait for it any more.
            let _ = serde_json::to_writer(io::stdout(), &report);
            if report.status == ApplyStatus::Complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            say(&in_full(&error));
            ExitCode::from(NO_REPORT)
        }
    }
}

fn apply_handed_over(node: &Node, digest: Digest, terms: Terms) -> Result<ApplyReport, WorkError> {
    let state = State::make(node)?;
    let lock = ApplyLock::inherited(&state).map_err(|error| WorkError::System("begun", error))?;
    apply_locked(node, &state, &lock, digest, terms)
}

/// Applies the configuration that was handed over, waits until the node is healthy, and keeps the report.
pub(crate) fn apply_locked(
    node: &Node,
    state: &State,
    lock: &ApplyLock,
    digest: Digest,
    terms: Terms,
) -> Result<ApplyReport, WorkError> {
    let deadline = Instant::now() + terms.limit;
    let cancelled = listen().map_err(|error| WorkError::System("made ready to be cancelled", error))?;
    lock.sign(digest).map_err(|error| WorkError::System("signed", error))?;
    let config = match terms.extent {
        Extent::Whole => state.take_over(digest)?,
        // The node has the one before until its system is the new one: a boot meanwhile is by that.
        Extent::BeforeSystem => state.handed_over(digest)?,
    };
    let attempts = state.attempts(digest)?;
    begin(state, &config, terms.mode, attempts)?;
    let stop = || {
        let is_cancelled = cancelled.load(Ordering::Relaxed);
        if is_cancelled { Some(Stop::Cancelled) } else { (Instant::now() >= deadline).then_some(Stop::Late) }
    };
    let around = Around { mode: terms.mode, attempts, extent: terms.extent, tell: &tell, stop: &stop };
    let applied = apply(node, &config, &around);
    if terms.extent == Extent::BeforeSystem {
        // It is not done before all of it is: nothing but a failure is kept.
        if applied.status == ApplyStatus::Failed {
            state.keep(&applied)?;
        }
        return Ok(applied);
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let report = with_health(node, &config, applied, terms.health.min(left));
    if report.status == ApplyStatus::Complete {
        // Before that is written down: after a cut in between all of it is done once more.
        vault::prune(state, &config)?;
    }
    state.keep(&report)?;
    Ok(report)
}

/// A configuration that was made true, and leaves the node unhealthy, is not complete: whoever looks later must not take
/// it for done.
fn with_health(node: &Node, config: &Config, applied: ApplyReport, limit: Duration) -> ApplyReport {
    if applied.status != ApplyStatus::Complete || config.role.health.is_empty() {
        return applied;
    }
    let health = health::wait_until_healthy(node, config, limit);
    let finished_at = jiff::Timestamp::now().to_string();
    let applied = ApplyReport { finished_at, health, ..applied };
    let failing: Vec<String> =
        applied.health.iter().filter(|check| !check.healthy).map(ToString::to_string).collect();
    if failing.is_empty() {
        return applied;
    }
    let error = Some(format!("it was configured, and is not healthy: {}", failing.join("; ")));
    ApplyReport { status: ApplyStatus::Failed, error, ..applied }
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
