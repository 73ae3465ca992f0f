//! One process for ever: a pid alone is given to another process in time.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use orch_run::start_of;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A process of this machine, told apart from every other that ever had or will have its pid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// When it started, in clock ticks since this machine booted.
    started: u64,
    /// Which boot of this machine that was.
    boot: String,
}

impl Process {
    /// The process that has this pid now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, started: start_of(pid.cast_unsigned())?, boot: boot()? })
    }

    /// Whether it still runs. A dead one that nobody has buried does not.
    pub(crate) fn is_alive(&self) -> bool {
        start_of(self.pid.cast_unsigned()) == Some(self.started) && boot().as_ref() == Some(&self.boot)
    }

    /// Opens a file of it under `/proc`. What is open is its own: it was still there afterwards, so nobody else can have had
    /// its pid before.
    pub(crate) fn open(&self, name: &str, how: OFlags) -> io::Result<File> {
        self.own(openat(CWD, self.proc(name), how | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// Where a link of it under `/proc` leads.
    pub(crate) fn link(&self, name: &str) -> io::Result<PathBuf> {
        self.own(fs::read_link(self.proc(name))?)
    }

    fn own<T>(&self, found: T) -> io::Result<T> {
        if self.is_alive() {
            return Ok(found);
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "it has ended"))
    }

    fn proc(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    /// Sends it a signal and waits for its end; whether it ended in time. One that is gone has ended.
    pub(crate) fn end(&self, signal: Signal, within: Duration) -> io::Result<bool> {
        let Some(handle) = self.handle()? else { return Ok(true) };
        match pidfd_send_signal(&handle, signal) {
            Ok(()) => wait_for_end(&handle, within),
            Err(rustix::io::Errno::SRCH) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for its end; whether that came in time. One that is gone has ended.
    pub(crate) fn ends(&self, within: Duration) -> io::Result<bool> {
        self.handle()?.map_or(Ok(true), |handle| wait_for_end(&handle, within))
    }

    /// A handle that stays with this very process, or nothing where it is gone.
    pub(crate) fn handle(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            // The handle is for whoever has the pid now; only if that is still ours is it ours for good.
            Ok(handle) => Ok(self.is_alive().then_some(handle)),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// What tells it from every other process of this machine's life.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.pid, self.started, self.boot)
    }
}

/// Waits for the end of a process; whether it came in time.
fn wait_for_end(handle: &OwnedFd, within: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_of_another_start_or_another_boot_is_not_the_process() {
        let this = Process::of(std::process::id().cast_signed()).expect("this process is there");
        assert!(this.is_alive());
        assert!(!Process { started: this.started + 1, ..this.clone() }.is_alive());
        assert!(!Process { boot: "another".into(), ..this.clone() }.is_alive());
        let another = Process { started: this.started + 1, ..this.clone() };
        for (process, is_it) in [(&this, true), (&another, false)] {
            assert_eq!(process.open("ns/net", OFlags::RDONLY).is_ok(), is_it);
            assert_eq!(process.link("exe").is_ok(), is_it);
        }
        assert_eq!(
            Process { started: this.started + 1, ..this }.end(Signal::KILL, Duration::ZERO).ok(),
            Some(true)
        );
    }

    #[test]
    fn a_process_is_ended_and_waited_for() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("`sleep` runs");
        let process = Process::of(child.id().cast_signed()).expect("it runs");
        assert!(process.end(Signal::TERM, Duration::from_secs(10)).expect("it can be signalled"));
        child.wait().expect("it can be buried");
        assert!(!process.is_alive());
    }
}
