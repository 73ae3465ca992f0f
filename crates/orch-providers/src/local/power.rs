//! Switching machines on and off.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use orch_run::Progress;
use rustix::process::Signal;

use super::HELPER;
use super::boot::BOOT;
use super::limits;
use super::make::{Doing, MakeError};
use super::record::Folder;

/// How long a machine may take to stop by itself.
const GRACE: Duration = Duration::from_secs(8);
/// How long the kernel may take to end what is killed.
const END: Duration = Duration::from_secs(20);

/// Starts a machine that is off, in a process of its own: it lives on in other namespaces.
pub(crate) fn on(program: &Path, folder: &Folder, progress: &Progress) -> Result<(), MakeError> {
    progress.say("starting");
    let mut command = Command::new(program);
    command.args([HELPER, BOOT]).arg(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output().doing("run the process that starts it")?;
    if output.status.success() {
        return Ok(());
    }
    Err(MakeError::NotStarted {
        machine: folder.name(),
        why: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        evidence: last_lines(&folder.console()),
    })
}

/// Asks a machine to stop, and ends it where it does not in time.
pub(crate) fn off(folder: &Folder) -> Result<(), MakeError> {
    end(folder, GRACE)
}

/// Ends a machine at once.
pub(crate) fn cut(folder: &Folder) -> Result<(), MakeError> {
    end(folder, Duration::ZERO)
}

fn end(folder: &Folder, grace: Duration) -> Result<(), MakeError> {
    let _lock = folder.lock().doing("lock it")?;
    let Some(boot) = folder.boot() else { return Ok(()) };
    let stopped = grace > Duration::ZERO && boot.init.end(Signal::TERM, grace).doing("ask it to stop")?;
    if !stopped && !boot.init.end(Signal::KILL, END).doing("end it")? {
        return Err(MakeError::Refused("its processes do not end".into()));
    }
    limits::remove(&boot.cgroups).doing("remove its control groups")?;
    folder.forget_boot().doing("forget that it ran")
}

/// The last lines of a log, for those who look for what went wrong.
pub(crate) fn last_lines(path: &Path) -> Vec<String> {
    const LINES: usize = 12;
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(LINES)).map(|line| (*line).to_owned()).collect()
}
