//! A configuration that arrives, by whatever way: it is handed to a worker that outlives this process, whose end is waited
//! for.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use orch_model::{ApplyReport, Config, Delivery, KeyName, Mode};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::apply::failed;
use crate::error::ApplyError;
use crate::node::Node;
use crate::resource::Extent;
use crate::state::{ApplyLock, State};
use crate::tool::timespec;
use crate::vault;
use crate::worker::Terms;

/// This very program.
pub(crate) const SELF: &str = "/proc/self/exe";

/// Says that only what a NixOS system finds when it is activated is meant.
pub(crate) const BEFORE_SYSTEM: &str = "--before-system";

/// How often what the worker says is passed on.
const TICK: Duration = Duration::from_millis(100);

/// Who follows a worker: is told what it says, every so often and be it nothing, and says whether to follow on.
pub(crate) type Follower<'f> = dyn FnMut(&[u8]) -> ControlFlow<()> + 'f;

/// Passes on what the worker says. Nobody may be there to read it, which is no reason to stop.
pub(crate) fn pass_on(text: &[u8]) -> ControlFlow<()> {
    let _ = io::stderr().write_all(text);
    ControlFlow::Continue(())
}

/// What became of a configuration that was pushed.
pub(crate) enum Pushed {
    /// It was applied, by a worker of ours or by one that was at it already.
    Ended(Box<ApplyReport>),
    /// Whoever is at it was not done within the time limit, and goes on.
    LimitReached(&'static str),
    /// Whoever followed had enough; the worker goes on.
    Left,
    /// The node does not hold these secrets of it, and was not brought them. Nothing was touched.
    Lacking(Vec<KeyName>),
}

/// Hands a configuration to a worker and waits for it. One that applies the same already is waited for instead, and one
/// that applies another is let finish first, before the secrets that it may need are replaced.
pub(crate) fn push(
    node: &Node,
    Delivery { config, parcel }: &Delivery,
    terms: Terms,
    follower: &mut Follower<'_>,
) -> Result<Pushed, ApplyError> {
    let (asked, deadline) = (Timestamp::now(), Instant::now() + terms.limit);
    let state = State::make(node)?;
    let Some(lock) = ApplyLock::wait(&state, terms.limit)? else {
        return Ok(Pushed::LimitReached("another configuration is still being applied"));
    };
    let whole = state.report()?.filter(|_| terms.extent == Extent::Whole);
    if let Some(report) = whole.filter(|report| answers(report, config, asked)) {
        return Ok(Pushed::Ended(Box::new(report)));
    }
    let lacking = vault::receive(&state, config, parcel.as_ref())?;
    if !lacking.is_empty() {
        return Ok(Pushed::Lacking(lacking));
    }
    state.hand_over(config)?;
    let log = state.new_log()?;
    let left = deadline.saturating_duration_since(Instant::now());
    let terms = Terms { limit: left, ..terms };
    let worker =
        Worker::start(node, config, terms, lock, log).map_err(ApplyError::file("start", SELF.as_ref()))?;
    let mut log = File::open(state.log_path()).map_err(ApplyError::file("open", &state.log_path()))?;
    match wait(&worker.child, &mut log, deadline, follower).map_err(failed_to_wait)? {
        End::Ended => conclude(worker, &state, config, terms.mode),
        End::Late => Ok(Pushed::LimitReached("the configuration is still being applied")),
        End::Left => Ok(Pushed::Left),
    }
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
            .args((terms.extent == Extent::BeforeSystem).then_some(BEFORE_SYSTEM))
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

/// How following a worker ended.
enum End {
    Ended,
    Late,
    Left,
}

/// Waits for the end of the worker and tells the follower what it says meanwhile.
fn wait(child: &Child, log: &mut File, deadline: Instant, follower: &mut Follower<'_>) -> io::Result<End> {
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(&end, PollFlags::IN)];
        let polled = poll(&mut fds, Some(&timespec(left.min(TICK))));
        let follows = follower(&news(log));
        match polled {
            Ok(1..) => return Ok(End::Ended),
            Ok(0) if left.is_zero() => return Ok(End::Late),
            _ if follows.is_break() => return Ok(End::Left),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What is new in the log. One that cannot be read says nothing.
fn news(log: &mut File) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = log.read_to_end(&mut text);
    text
}

/// What came of a worker that has ended.
fn conclude(mut worker: Worker, state: &State, config: &Config, mode: Mode) -> Result<Pushed, ApplyError> {
    let status = worker.child.wait().map_err(failed_to_wait)?;
    if let Some(report) = worker.report() {
        return Ok(Pushed::Ended(Box::new(report)));
    }
    // It counted itself when it began, if it came to that.
    let begun = state.report()?.filter(|report| report.spec_digest == config.digest());
    let attempts = begun.map_or(1, |report| report.attempts);
    Ok(Pushed::Ended(Box::new(failed(config, mode, attempts, &died(status, state)))))
}

fn failed_to_wait(error: io::Error) -> ApplyError {
    ApplyError::file("wait for", "worker".as_ref())(error)
}

fn died(status: ExitStatus, state: &State) -> String {
    let log = std::fs::read_to_string(state.log_path()).unwrap_or_default();
    let last = log.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
    format!("the worker left no report, and ended with {status}{last}")
}
