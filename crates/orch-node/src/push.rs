//! A configuration that arrives: it is handed to a worker that outlives this process, whose end is waited for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use orch_model::{ApplyReport, Config, Mode};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::apply::failed;
use crate::error::ApplyError;
use crate::node::Node;
use crate::state::{ApplyLock, State};
use crate::tool::timespec;

/// How often what the worker says is passed on.
const TICK: Duration = Duration::from_millis(100);

/// What became of a configuration that was pushed.
pub(crate) enum Pushed {
    /// It was applied, by a worker of ours or by one that was at it already.
    Ended(Box<ApplyReport>),
    /// Whoever is at it was not done within the time limit, and goes on.
    LimitReached(&'static str),
}

/// Hands a configuration to a worker and waits for it. One that applies the same already is waited for instead, and one
/// that applies another is let finish first.
pub(crate) fn push(node: &Node, config: &Config, mode: Mode, limit: Duration) -> Result<Pushed, ApplyError> {
    let (asked, deadline) = (Timestamp::now(), Instant::now() + limit);
    let state = State::make(node)?;
    let Some(lock) = ApplyLock::wait(&state, limit)? else {
        return Ok(Pushed::LimitReached("another configuration is still being applied"));
    };
    if let Some(report) = state.report()?.filter(|report| answers(report, config, asked)) {
        return Ok(Pushed::Ended(Box::new(report)));
    }
    state.hand_over(config)?;
    let log = state.new_log()?;
    let child =
        start(node, config, mode, lock, log).map_err(ApplyError::file("start", "/proc/self/exe".as_ref()))?;
    follow(child, &state, config, mode, deadline)
}

/// Whether a report is of this very configuration and ended after it was pushed: then somebody else did what we came for.
fn answers(report: &ApplyReport, config: &Config, asked: Timestamp) -> bool {
    let ended: Option<Timestamp> = report.finished_at.parse().ok();
    // One without any resource is of work that was begun and never ended.
    let is_whole = !report.resources.is_empty();
    is_whole && report.spec_digest == config.digest() && ended.is_some_and(|ended| ended > asked)
}

/// Starts the worker, with the lock as its standard input: there is no moment in which nobody has it.
fn start(node: &Node, config: &Config, mode: Mode, lock: ApplyLock, log: File) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg0("orch-node")
        .arg("--root")
        .arg(node.outside("/".as_ref()))
        .args(["worker", "--mode", mode.as_str(), &config.digest().to_string()])
        .current_dir("/")
        .stdin(lock.hand_over())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}

fn follow(
    mut child: Child,
    state: &State,
    config: &Config,
    mode: Mode,
    deadline: Instant,
) -> Result<Pushed, ApplyError> {
    let failed_to = |error: io::Error| ApplyError::file("wait for", "worker".as_ref())(error);
    let mut log = File::open(state.log_path()).map_err(ApplyError::file("open", &state.log_path()))?;
    let has_ended = wait(&child, &mut log, deadline).map_err(failed_to)?;
    if !has_ended {
        return Ok(Pushed::LimitReached("the configuration is still being applied"));
    }
    let status = child.wait().map_err(failed_to)?;
    pass_on(&mut log);
    let report = state.report()?.filter(|report| report.spec_digest == config.digest());
    let report = report.filter(|_| matches!(status.code(), Some(0 | 1)));
    let attempts = state.attempts(config.digest())?;
    let report = report.unwrap_or_else(|| failed(config, mode, attempts, &died(status, state)));
    Ok(Pushed::Ended(Box::new(report)))
}

/// Waits for the end of the worker and passes on what it says meanwhile. Whether it ended before the deadline.
fn wait(child: &Child, log: &mut File, deadline: Instant) -> io::Result<bool> {
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(&end, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(left.min(TICK)))) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => pass_on(log),
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Passes on what is new in the log. Nobody may be there to read it, which is no reason to stop.
fn pass_on(log: &mut File) {
    let mut text = Vec::new();
    if log.read_to_end(&mut text).is_ok() {
        let _ = io::stderr().write_all(&text);
    }
}

fn died(status: ExitStatus, state: &State) -> String {
    let log = std::fs::read_to_string(state.log_path()).unwrap_or_default();
    let last = log.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
    format!("the worker left no report, and ended with {status}{last}")
}
