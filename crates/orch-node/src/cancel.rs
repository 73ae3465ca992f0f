//! Ending a running worker: it is asked first, and stops between two resources; then it is ended with all it started.

use std::fs;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::error::ApplyError;
use crate::node::Node;
use crate::state::{ApplyLock, Holder, State, is_alive, session_of};
use crate::tool::timespec;

/// How long a worker that is just being started may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(2);

/// What became of a running worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancelled {
    /// There was none.
    Nothing,
    /// It stopped when it was asked.
    Stopped,
    /// It did not, and was ended.
    Killed,
}

/// Ends a running worker, if there is one.
pub(crate) fn cancel(node: &Node, grace: Duration) -> Result<Cancelled, ApplyError> {
    let Some(state) = State::find(node)? else { return Ok(Cancelled::Nothing) };
    let Some((holder, end)) = find(&state)? else { return Ok(Cancelled::Nothing) };
    let failed = || ApplyError::file::<Errno>("end", "worker".as_ref());
    signal(&end, Signal::TERM).map_err(failed())?;
    if ends_within(&end, grace).map_err(failed())? {
        return Ok(Cancelled::Stopped);
    }
    signal(&end, Signal::KILL).map_err(failed())?;
    end_session(holder.pid);
    ends_within(&end, grace).map_err(failed())?;
    Ok(Cancelled::Killed)
}

/// The worker, held so that no other process can take its number; nothing where none runs.
fn find(state: &State) -> Result<Option<(Holder, OwnedFd)>, ApplyError> {
    // Whoever holds the lock has signed it, or is about to: then it is waited for, or the lock is had.
    for _ in 0..20 {
        if ApplyLock::try_take(state)?.is_some() {
            return Ok(None);
        }
        if let Some(found) = Holder::find(state)?.and_then(hold) {
            return Ok(Some(found));
        }
        if ApplyLock::wait(state, INTRODUCTION / 20)?.is_some() {
            return Ok(None);
        }
    }
    Err(ApplyError::Impossible("somebody applies a configuration, and does not say who".into()))
}

fn hold(holder: Holder) -> Option<(Holder, OwnedFd)> {
    let end = pidfd_open(Pid::from_raw(i32::try_from(holder.pid).ok()?)?, PidfdFlags::empty()).ok()?;
    // Only what is looked at after it is held is known to be the one that is held.
    is_alive(holder.pid, holder.started).then_some((holder, end))
}

fn signal(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    match pidfd_send_signal(process, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error),
    }
}

fn ends_within(process: &OwnedFd, time: Duration) -> Result<bool, Errno> {
    loop {
        let mut fds = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(time))) {
            Err(Errno::INTR) => {}
            ended => return ended.map(|count| count > 0),
        }
    }
}

/// Ends what a worker started: all of it is in the worker's session, which is named for it.
fn end_session(worker: u32) {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids.filter(|pid| session_of(*pid) == Some(worker)) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
