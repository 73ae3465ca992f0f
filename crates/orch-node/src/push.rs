//! A configuration that arrives: it is handed to a worker that outlives this process, whose end is waited for.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use orch_model::{ApplyReport, Config, Mode};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::apply::failed;
use crate::error::ApplyError;
use crate::node::Node;
use crate::state::{ApplyLock, State};
use crate::tool::timespec;
use crate::worker::Terms;

/// This very program.
const SELF: &str = "/proc/self/exe";

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
pub(crate) fn push(node: &Node, config: &Config, terms: Terms) -> Result<Pushed, ApplyError> {
    let (asked, deadline) = (Timestamp::now(), Instant::now() + terms.limit);
    let state = State::make(node)?;
    let Some(lock) = ApplyLock::wait(&state, terms.limit)? else {
        return Ok(Pushed::LimitReached("another configuration is still being applied"));
    };
    if let Some(report) = state.report()?.filter(|report| answers(report, config, asked)) {
        return Ok(Pushed::Ended(Box::new(report)));
    }
    state.hand_over(config)?;
    let log = state.new_log()?;
    let left = deadline.saturating_duration_since(Instant::now());
    let terms = Terms { limit: left, ..terms };
    let worker =
        Worker::start(node, config, terms, lock, log).map_err(ApplyError::file("start", SELF.as_ref()))?;
    follow(worker, &state, config, terms.mode, deadline)
}

/// Whether a report is of this very configuration and ended after it was pushed: then somebody else did what we came for.
fn answers(report: &ApplyReport, config: &Config, asked: Timestamp) -> bool {
    let ended: Option<Timestamp> = report.finished_at.parse().ok();
    // One without any resource is of work that was begun and never ended.
    let is_whole = !report.resources.is_empty();
    is_whole && report.spec_digest == config.digest() && ended.is_some_and(|ended| ended > asked)
}

/// A worker that was started, and where it leaves its report.
struct Worker {
    child: Child,
    report: File,
}

impl Worker {
    /// Starts it with the lock as its standard input: there is no moment in which nobody has it.
    fn start(node: &Node, config: &Config, terms: Terms, lock: ApplyLock, log: File) -> io::Result<Self> {
        let report = File::from(rustix::fs::memfd_create("report", MemfdFlags::CLOEXEC)?);
        let seconds = |time: Duration| time.as_secs().max(1).to_string();
        let child = Command::new(SELF)
            .arg0("orch-node")
            .arg("--root")
            .arg(node.outside("/".as_ref()))
            .args(["worker", "--mode", terms.mode.as_str()])
            .args(["--limit", &seconds(terms.limit), "--health", &seconds(terms.health)])
            .arg(config.digest().to_string())
            .current_dir("/")
            .stdin(lock.hand_over())
            .stdout(report.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self { child, report })
    }

    /// What it left, once it has ended.
    fn report(&mut self) -> Option<ApplyReport> {
        self.report.rewind().ok()?;
        serde_json::from_reader(&self.report).ok()
    }
}

fn follow(
    mut worker: Worker,
    state: &State,
    config: &Config,
    mode: Mode,
    deadline: Instant,
) -> Result<Pushed, ApplyError> {
    let failed_to = |error: io::Error| ApplyError::file("wait for", "worker".as_ref())(error);
    let mut log = File::open(state.log_path()).map_err(ApplyError::file("open", &state.log_path()))?;
    let has_ended = wait(&worker.child, &mut log, deadline).map_err(failed_to)?;
    if !has_ended {
        return Ok(Pushed::LimitReached("the configuration is still being applied"));
    }
    let status = worker.child.wait().map_err(failed_to)?;
    pass_on(&mut log);
    if let Some(report) = worker.report() {
        return Ok(Pushed::Ended(Box::new(report)));
    }
    // It counted itself when it began, if it came to that.
    let begun = state.report()?.filter(|report| report.spec_digest == config.digest());
    let attempts = begun.map_or(1, |report| report.attempts);
    Ok(Pushed::Ended(Box::new(failed(config, mode, attempts, &died(status, state)))))
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
