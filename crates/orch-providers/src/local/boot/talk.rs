//! What the three processes of a boot say to each other: a word a line, each waited for with a deadline.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{BootError, Doing, Trouble};

/// A word from the one outside: go on.
pub(super) const GO: &str = "go";
/// From the one that unshares: it has a user namespace, whose ids must be given from outside.
pub(super) const UNSHARED: &str = "unshared";
/// From the machine's first process: it is there.
pub(super) const HERE: &str = "here";
/// From the machine's first process: it is in place.
pub(super) const READY: &str = "ready";

/// Says a word.
pub(super) fn say(mut to: impl Write, word: &str) -> Result<(), BootError> {
    to.write_all(format!("{word}\n").as_bytes()).and_then(|()| to.flush()).doing("speak to the other side")
}

/// Waits for a word. Anything else is what went wrong, as the other side tells it.
pub(super) fn expect(from: impl AsFd, word: &'static str, deadline: Instant) -> Result<(), BootError> {
    let line = read_line(from.as_fd(), deadline).doing("hear from the other side")?;
    match line {
        Some(line) if line == word => Ok(()),
        Some(line) if line.is_empty() => {
            Err(BootError::Said("the process that was to do it ended early".into()))
        }
        Some(line) => Err(BootError::Told(Trouble::heard(&line))),
        None => Err(BootError::Late(word)),
    }
}

/// Reads up to the end of a line, byte for byte: what follows is for somebody else. Nothing where the time was over.
fn read_line(from: BorrowedFd<'_>, deadline: Instant) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut byte = [0_u8];
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).min(Duration::from_hours(1));
        let left = Timespec::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        match poll(&mut [PollFd::from_borrowed_fd(from, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(None),
            Err(rustix::io::Errno::INTR) => continue,
            ready => ready?,
        };
        let length = rustix::io::read(from, &mut byte)?;
        if length == 0 || byte[0] == b'\n' {
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
        line.push(byte[0]);
    }
}
