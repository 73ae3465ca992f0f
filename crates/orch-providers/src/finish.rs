//! Programs that are run to their end on this computer, within a limit. What they write is taken as it comes: one that
//! writes more than a pipe holds would wait for ever for somebody who waits for its end.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use orch_run::withhold;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// How much of each stream is kept; of more, the end.
const MOST: usize = 64 << 10;

/// How a program ended, and the end of what it wrote.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Finished {
    /// What it had to say, without the blanks around it.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
}

/// Runs a program to its end, and ends it with all that it started where it takes longer than its limit. It is in a
/// process group of its own: Ctrl-C is for orch, which lets it come to its end.
pub(crate) fn finish(command: &mut Command, limit: Duration) -> io::Result<Finished> {
    let mut stdout = Vec::new();
    let finished = finish_hearing(command, limit, |bytes| keep_end(&mut stdout, bytes))?;
    Ok(Finished { stdout, ..finished })
}

/// The same, for a program whose output is long: it is handed on piece by piece, and none of it kept.
pub(crate) fn finish_hearing(
    command: &mut Command,
    limit: Duration,
    mut hear: impl FnMut(&[u8]),
) -> io::Result<Finished> {
    let command = withhold(command).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn()?;
    let pid = Pid::from_child(&child);
    let mut stderr = Vec::new();
    let (mut out, mut err) = (Stream::of(child.stdout.take()), Stream::of(child.stderr.take()));
    let attended =
        attend(pid, limit, (&mut out, &mut hear), (&mut err, &mut |bytes| keep_end(&mut stderr, bytes)));
    if !matches!(attended, Ok(true)) {
        // It has not been waited for, so its id is still its own.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait()?;
    if attended? {
        Ok(Finished { status, stdout: Vec::new(), stderr })
    } else {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {limit:?}")))
    }
}

type Heard<'h, R> = (&'h mut Stream<R>, &'h mut dyn FnMut(&[u8]));

/// Takes what a program writes until it ends; whether that was in time. What it started may live on and hold its streams
/// open, so their end is not waited for.
fn attend(
    pid: Pid,
    limit: Duration,
    (out, hear_out): Heard<'_, impl Read + AsFd>,
    (err, hear_err): Heard<'_, impl Read + AsFd>,
) -> io::Result<bool> {
    let (end, deadline) = (pidfd_open(pid, PidfdFlags::empty())?, Instant::now() + limit);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut waited = vec![PollFd::new(&end, PollFlags::IN)];
        waited.extend(out.0.iter().map(|stream| PollFd::new(stream, PollFlags::IN)));
        waited.extend(err.0.iter().map(|stream| PollFd::new(stream, PollFlags::IN)));
        match poll(&mut waited, Some(&left)) {
            Ok(0) => return Ok(false),
            Err(rustix::io::Errno::INTR) => continue,
            ready => ready?,
        };
        let has_ended = !waited[0].revents().is_empty();
        drop(waited);
        out.take(hear_out)?;
        err.take(hear_err)?;
        if has_ended {
            return Ok(true);
        }
    }
}

/// A stream of a program, until it is at its end.
struct Stream<R>(Option<R>);

impl<R: Read + AsFd> Stream<R> {
    fn of(stream: Option<R>) -> Self {
        let unwaited = |stream: &R| {
            let flags = fcntl_getfl(stream)?;
            fcntl_setfl(stream, flags | OFlags::NONBLOCK)
        };
        // One that would have to be waited for is not heard at all.
        Self(stream.filter(|stream| unwaited(stream).is_ok()))
    }

    /// Takes what is there: no more than the largest pipe holds, since one that is filled as fast as it is emptied would
    /// keep us from looking at the clock.
    fn take(&mut self, hear: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        const BITES: usize = 64;
        let mut bite = [0; 16 << 10];
        for _ in 0..BITES {
            let Some(stream) = &mut self.0 else { break };
            match stream.read(&mut bite) {
                Ok(0) => self.0 = None,
                Ok(length) => hear(&bite[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn keep_end(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    let more = kept.len().saturating_sub(MOST);
    kept.drain(..more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn a_program_that_writes_more_than_a_pipe_holds_comes_to_its_end_and_its_last_words_are_kept() {
        let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; echo the end >&2; exit 3";
        let ended = finish(&mut shell(script), Duration::from_mins(1)).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!((ended.stdout.len(), ended.stderr.len()), (MOST, MOST));
        assert!(ended.stderr.ends_with(b"\0the end\n"));
        let mut heard = 0;
        finish_hearing(&mut shell(script), Duration::from_mins(1), |bytes| heard += bytes.len()).unwrap();
        assert_eq!(heard, 300_000, "what is handed on is all of it");
    }

    #[test]
    fn a_program_that_writes_for_ever_is_ended_at_its_limit() {
        let began = Instant::now();
        let late = finish(&mut shell("yes >&2"), Duration::from_millis(200));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_a_program_leaves_running_is_not_waited_for() {
        let ended = finish(&mut shell("sleep 3 & echo $! >&2"), Duration::from_secs(2)).unwrap();
        assert!(ended.status.success() && ended.said().parse::<u32>().is_ok());
    }
}
