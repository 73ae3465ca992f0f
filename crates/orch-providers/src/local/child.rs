//! Programs that are run on the way to a machine. They are in a process group of their own: Ctrl-C is for orch, which lets
//! them come to their end. None is waited for without a limit.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::HELPER;
use super::process::wait_for_end;

/// How long a tool may take: the longest of them unpack and copy whole systems.
const LIMIT: Duration = Duration::from_mins(10);

/// This program, about to do one piece of work in a process of its own.
pub(crate) fn helper(program: &Path, word: &str, about: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([HELPER, word]).arg(about).stdin(Stdio::null());
    command
}

/// Runs a program that must end with one of these codes; else what it said is the error.
pub(crate) fn run(command: &mut Command, fine: &[i32]) -> io::Result<()> {
    command.stdin(Stdio::null());
    must_end_with(command, fine)
}

/// The same, for a program that writes to what a lock guards: it has the lock for as long as it runs, also where whoever
/// started it is gone by then.
pub(crate) fn run_holding(command: &mut Command, lock: &File, fine: &[i32]) -> io::Result<()> {
    command.stdin(lock.try_clone()?);
    must_end_with(command, fine)
}

fn must_end_with(command: &mut Command, fine: &[i32]) -> io::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = finish(command, LIMIT);
    let output =
        output.map_err(|error| io::Error::new(error.kind(), format!("`{name}` cannot be run: {error}")))?;
    if output.status.code().is_some_and(|code| fine.contains(&code)) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("`{name}` ended with {}: {}", output.status, said.trim())))
}

/// Runs a program to its end, and ends it with all that it started where it takes longer than its limit.
pub(crate) fn finish(command: &mut Command, limit: Duration) -> io::Result<Output> {
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let pid = Pid::from_child(&child);
    let end = pidfd_open(pid, PidfdFlags::empty())?;
    let is_late = !wait_for_end(&end, limit)?;
    if is_late {
        // It has not been waited for, so its id is still its own.
        kill_process_group(pid, Signal::KILL)?;
    }
    let output = child.wait_with_output()?;
    if is_late {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {limit:?}")))
    } else {
        Ok(output)
    }
}
