//! Programs that are run on the way to a machine. None is waited for without a limit.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use orch_run::withhold;

use super::HELPER;
use crate::finish::finish;

/// How long a tool may take: the longest of them unpack and copy whole systems.
pub(crate) const LIMIT: Duration = Duration::from_mins(10);

/// This program, about to do one piece of work in a process of its own.
pub(crate) fn helper(program: &Path, word: &str, about: &Path) -> Command {
    let mut command = Command::new(program);
    withhold(&mut command).args([HELPER, word]).arg(about).stdin(Stdio::null());
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
    let ended = finish(command, LIMIT);
    let ended =
        ended.map_err(|error| io::Error::new(error.kind(), format!("`{name}` cannot be run: {error}")))?;
    if ended.status.code().is_some_and(|code| fine.contains(&code)) {
        return Ok(());
    }
    Err(io::Error::other(format!("`{name}` ended with {}: {}", ended.status, ended.said())))
}
