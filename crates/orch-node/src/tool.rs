//! A program of the node, run by its path with arguments that no shell ever sees, within a time limit.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::error::ApplyError;
use crate::node::Node;

/// Where programs are looked for.
pub(crate) const FOLDERS: [&str; 7] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/run/current-system/sw/bin",
];

/// Tests set this: the programs of a tree of files are then stand-ins that know that they work on a tree. Nothing in the
/// tree itself can say so.
const STAND_INS: &str = "ORCH_NODE_STAND_INS";

/// As much as a pipe holds where nobody has asked the kernel for more.
const MOST_IN_A_PIPE: usize = 1 << 20;

/// How much of what a program says is kept; of more, the end.
const MOST_OUTPUT: usize = 4 << 20;

/// A program of the node.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    path: PathBuf,
    /// What it is told that it is called, where that is not its path.
    called: Option<&'static str>,
}

/// What became of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    /// How it ended; nothing where it had to be ended at its time limit.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Node {
    /// Whether programs of the node are run. Those of a tree of files are not: they would work on this machine instead.
    pub(crate) fn runs_programs(&self) -> bool {
        self.is_real() || std::env::var_os(STAND_INS).is_some()
    }

    /// Finds a program of the node, where its programs are run.
    pub(crate) fn tool(&self, name: &str) -> Option<Tool> {
        if !self.runs_programs() {
            return None;
        }
        let mut paths = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
        paths.find(|path| self.is_file(path)).map(|path| Tool::at(self.outside(&path)))
    }
}

impl Tool {
    /// A program by its path, or by its name where the search path is to find it.
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), called: None }
    }

    /// This very program.
    pub(crate) fn this() -> Self {
        Self { path: crate::push::SELF.into(), called: Some("orch-node") }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs it and takes any end but the time limit for an answer.
    pub(crate) fn ask(&self, args: &[&str], limit: Duration) -> Result<Ended, ApplyError> {
        let ended = self.run(args, &[], limit).map_err(ApplyError::file("run", &self.path))?;
        if ended.status.is_none() {
            return Err(self.failed(&ended, limit));
        }
        Ok(ended)
    }

    /// Runs it, and it must succeed.
    pub(crate) fn need(
        &self,
        args: &[&str],
        variables: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Ended, ApplyError> {
        let ended = self.run(args, variables, limit).map_err(ApplyError::file("run", &self.path))?;
        if ended.is_success() { Ok(ended) } else { Err(self.failed(&ended, limit)) }
    }

    /// Runs it in a group of its own, with nothing of this process's surroundings, and waits for its end.
    pub(crate) fn run(
        &self,
        args: &[&str],
        variables: &[(&str, &str)],
        limit: Duration,
    ) -> io::Result<Ended> {
        let mut command = Command::new(&self.path);
        if let Some(name) = self.called {
            command.arg0(name);
        }
        let mut child = command
            .args(args)
            .env_clear()
            .env("PATH", FOLDERS.join(":"))
            .env("LC_ALL", "C")
            .env("HOME", "/root")
            .envs(variables.iter().copied())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let mut stdout = Stream::new(child.stdout.take().expect("standard output is piped"))?;
        let mut stderr = Stream::new(child.stderr.take().expect("standard error is piped"))?;
        let heard = listen(&child, &mut stdout, &mut stderr, Instant::now() + limit);
        if !matches!(heard, Ok(true)) {
            // It may have ended meanwhile; then there is nobody left to end.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        }
        let status = child.wait()?;
        Ok(Ended { status: heard?.then_some(status), stdout: stdout.said, stderr: stderr.said })
    }

    fn failed(&self, ended: &Ended, limit: Duration) -> ApplyError {
        let how = match ended.status {
            Some(status) => format!("ended with {status}"),
            None => format!("was ended after {} s", limit.as_secs()),
        };
        ApplyError::Program { program: self.path.display().to_string(), how, said: ended.last_words() }
    }
}

impl Ended {
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The last lines of what it said, in one.
    pub(crate) fn last_words(&self) -> String {
        let said = if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr };
        let text = String::from_utf8_lossy(said);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(4)..].join("; ")
    }
}

/// Reads what a program says until it ends. Whether it did before the deadline.
fn listen<A: AsFd + Read, B: AsFd + Read>(
    child: &Child,
    stdout: &mut Stream<A>,
    stderr: &mut Stream<B>,
    deadline: Instant,
) -> io::Result<bool> {
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    // Asked here, and not only of the wait: whoever talks without a pause is never waited for.
    while Instant::now() < deadline {
        let mut fds = [
            PollFd::new(&end, PollFlags::IN),
            PollFd::from_borrowed_fd(stdout.polled(&end), PollFlags::IN),
            PollFd::from_borrowed_fd(stderr.polled(&end), PollFlags::IN),
        ];
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut fds, Some(&timespec(left))) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let has_ended = !fds[0].revents().is_empty();
        stdout.drain()?;
        stderr.drain()?;
        // What a program started and left behind may hold its output open for ever: its own end counts.
        if has_ended {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How long to wait, as the kernel is told.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

/// One of the two things that a program talks through.
struct Stream<T> {
    from: T,
    said: Vec<u8>,
    is_open: bool,
}

impl<T: AsFd + Read> Stream<T> {
    fn new(from: T) -> io::Result<Self> {
        fcntl_setfl(&from, OFlags::NONBLOCK)?;
        Ok(Self { from, said: Vec::new(), is_open: true })
    }

    /// What to wait on: a stream that was closed would wake the waiting at once, for ever.
    fn polled<'a>(&'a self, instead: &'a impl AsFd) -> std::os::fd::BorrowedFd<'a> {
        if self.is_open { self.from.as_fd() } else { instead.as_fd() }
    }

    /// Takes what is there, and no more than a pipe can hold: whoever goes on talking is asked again.
    fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        for _ in 0..MOST_IN_A_PIPE / buffer.len() {
            if !self.is_open {
                break;
            }
            match self.from.read(&mut buffer) {
                Ok(0) => self.is_open = false,
                Ok(count) => self.keep(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.said.extend_from_slice(bytes);
        if self.said.len() > 2 * MOST_OUTPUT {
            self.said.drain(..self.said.len() - MOST_OUTPUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (Ended, Duration) {
        let begin = Instant::now();
        let ended = Tool::at("sh").run(&["-c", script], &[], limit).unwrap();
        (ended, begin.elapsed())
    }

    #[test]
    fn a_program_that_never_stops_talking_is_ended_at_its_limit_too() {
        let (ended, took) = shell("exec yes", Duration::from_millis(300));
        assert_eq!(ended.status, None);
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert!(ended.stdout.len() <= 2 * MOST_OUTPUT);
    }

    #[test]
    fn what_a_program_said_is_heard_whole_and_one_that_left_a_talker_behind_has_ended() {
        let (ended, _) = shell("head -c 3000000 /dev/zero; echo end >&2", Duration::from_mins(1));
        assert_eq!((ended.stdout.len(), ended.stderr.as_slice()), (3_000_000, &b"end\n"[..]));
        let (ended, took) = shell("timeout 20 yes & exit 0", Duration::from_mins(1));
        assert!(ended.is_success() && took < Duration::from_secs(10), "{took:?}");
    }
}
