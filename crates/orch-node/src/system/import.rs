//! Taking what another store exported. It comes by a connection that may die without a word, so that it is passed on piece
//! by piece: where nothing comes for a while, nobody is there any more.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use orch_model::StorePath;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::SystemError;
use super::nix::lines;
use crate::tool::timespec;

/// As much as a pipe holds.
const PIECE: usize = 64 << 10;

/// How long something that comes from elsewhere is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// For all of it.
    pub(crate) whole: Duration,
    /// For the next piece.
    pub(crate) piece: Duration,
}

/// Has a program take what comes on standard input, and says what that was.
pub(super) fn import(program: &Path, patience: Patience) -> Result<Vec<StorePath>, SystemError> {
    let failed = || SystemError::file("run", program);
    let mut command = Command::new(program);
    // What is said on the way goes to whoever brings it.
    let child = command.arg("--import").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(failed())?;
    let into = child.stdin.take().expect("standard input is piped");
    let late = end_when_late(&child, into, patience).map_err(SystemError::file("follow", program))?;
    let ended = child.wait_with_output().map_err(failed())?;
    if ended.status.success() {
        return Ok(lines(&ended.stdout));
    }
    match late.try_recv() {
        Ok(why) => Err(SystemError::Late(why)),
        Err(_) => Err(failed()(io::Error::other(format!("it ended with {}", ended.status)))),
    }
}

/// Passes on what comes, and ends the process that takes it where that does not come in time. Why it was ended is said
/// before it is.
fn end_when_late(child: &Child, into: ChildStdin, patience: Patience) -> io::Result<Receiver<&'static str>> {
    let (says, late) = channel();
    let deadline = Instant::now() + patience.whole;
    let (clock, passer) = (process_of(child)?, process_of(child)?);
    let says_too = says.clone();
    thread::spawn(move || {
        if !ends_by(&clock, deadline) {
            end(&clock, &says, "not all of it came");
        }
    });
    thread::spawn(move || {
        // Where it takes no more, it says why itself.
        if let Ok(false) = pass_on(into, patience.piece) {
            end(&passer, &says_too, "nothing came any more");
        }
    });
    Ok(late)
}

fn process_of(child: &Child) -> rustix::io::Result<OwnedFd> {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty())
}

fn end(process: &OwnedFd, says: &Sender<&'static str>, why: &'static str) {
    let _ = says.send(why);
    // It may have ended meanwhile.
    let _ = pidfd_send_signal(process, Signal::KILL);
}

/// Whether a process ends by itself before a deadline.
fn ends_by(process: &OwnedFd, deadline: Instant) -> bool {
    is_ready(process, deadline.saturating_duration_since(Instant::now())).unwrap_or(true)
}

/// Passes on all that comes on standard input. Whether it came to its end: nothing may come for longer than this.
fn pass_on(mut into: ChildStdin, piece: Duration) -> io::Result<bool> {
    let from = io::stdin();
    let mut text = vec![0; PIECE];
    while is_ready(&from, piece)? {
        match rustix::io::read(&from, &mut text) {
            Ok(0) => return Ok(true),
            Ok(count) => into.write_all(&text[..count])?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Whether there is something to read within a time.
fn is_ready(from: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&timespec(left))) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
