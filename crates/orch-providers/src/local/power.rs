//! Switching machines on and off.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use orch_run::Progress;
use rustix::fs::OFlags;
use rustix::process::Signal;
use uuid::Uuid;

use super::boot::{BOOT, Trouble};
use super::child::helper;
use super::enter::KNOCK;
use super::inside;
use super::limits::{self, Hierarchies};
use super::make::{Doing, MakeError};
use super::process::Process;
use super::record::{Boot, Folder};
use crate::finish::finish;

/// How long a machine may take to stop by itself.
const GRACE: Duration = Duration::from_secs(8);
/// How long the process that starts a machine may take, which has a limit of its own.
const STARTING: Duration = Duration::from_mins(5);
/// How long the kernel may take to end what is killed.
const END: Duration = Duration::from_secs(20);

/// Starts a machine that is off, in a process of its own: it lives on in other namespaces.
pub(crate) fn on(program: &Path, folder: &Folder, progress: &Progress) -> Result<(), MakeError> {
    progress.say("starting");
    let mut command = helper(program, BOOT, folder.path());
    let ended = finish(&mut command, STARTING).doing("run the process that starts it")?;
    if ended.status.success() {
        return Ok(());
    }
    Err(MakeError::NotStarted {
        machine: folder.name(),
        why: Trouble::of_helper(&ended),
        evidence: last_lines(&folder.console()),
    })
}

/// Waits until a machine that has an SSH server answers by it.
pub(crate) fn reach(
    program: &Path,
    folder: &Folder,
    within: Duration,
    progress: &Progress,
) -> Result<(), MakeError> {
    progress.say("waiting for ssh");
    let mut command = helper(program, KNOCK, folder.path());
    command.arg(ssh_port(folder).to_string()).arg(within.as_millis().to_string());
    let ended = finish(&mut command, within + END).doing("run the process that knocks")?;
    if ended.status.success() {
        return Ok(());
    }
    if folder.running().is_none() {
        return Err(went_off(folder));
    }
    let log = folder.running().and_then(|init| inside::read_end(&init, "/var/log/sshd.log").ok());
    Err(MakeError::NotReached {
        machine: folder.name(),
        why: ended.said(),
        evidence: log.map(|log| tail(&log)).unwrap_or_default(),
    })
}

/// A machine that came up and is off again.
fn went_off(folder: &Folder) -> MakeError {
    MakeError::NotStarted {
        machine: folder.name(),
        why: Trouble::in_words("it went off again"),
        evidence: last_lines(&folder.console()),
    }
}

/// Waits until the init of an image is up, where no SSH server is there to tell: before that, nothing can be asked of it.
pub(crate) fn settle(
    program: &Path,
    folder: &Folder,
    within: Duration,
    progress: &Progress,
) -> Result<(), MakeError> {
    progress.say("waiting for its init");
    let deadline = Instant::now() + within;
    loop {
        let init = folder.running();
        if init.as_ref().is_some_and(|init| is_up(init, program)) {
            return Ok(());
        }
        if init.is_none() {
            return Err(went_off(folder));
        }
        if Instant::now() >= deadline {
            let why = format!("it is not up within {within:?}");
            let evidence = init.and_then(|init| inside::read_end(&init, "/var/log/orch-init.log").ok());
            let evidence = evidence.map(|log| tail(&log)).unwrap_or_default();
            return Err(MakeError::NotReached { machine: folder.name(), why, evidence });
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a machine's first process is the image's own by now and, if that is systemd, can be spoken to.
fn is_up(init: &Process, program: &Path) -> bool {
    let runs = init.open("exe", OFlags::PATH).and_then(|exe| exe.metadata());
    let (Ok(runs), Ok(ours), Ok(name)) = (runs, fs::metadata(program), init.link("exe")) else {
        return false;
    };
    let is_ours = runs.ino() == ours.ino() && runs.dev() == ours.dev();
    let is_systemd = name.file_name().is_some_and(|name| name == "systemd");
    !is_ours && (!is_systemd || inside::about(init, "/run/systemd/private").is_ok())
}

/// The port that a machine's SSH server listens on.
pub(crate) fn ssh_port(folder: &Folder) -> u16 {
    ssh_setting(folder, "Port").and_then(|port| port.parse().ok()).unwrap_or(22)
}

/// Whether a machine's SSH server lets root in by no means.
pub(crate) fn refuses_root(folder: &Folder) -> bool {
    ssh_setting(folder, "PermitRootLogin").is_some_and(|answer| answer == "no")
}

/// What a spec made of a setting of a machine's SSH server.
fn ssh_setting(folder: &Folder, name: &str) -> Option<String> {
    let settings = inside::read(&folder.running()?, "/etc/ssh/sshd_config.d/50-orch.conf").ok()?;
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(' ')?.trim().to_owned());
    settings.lines().find_map(value)
}

/// Asks the machine that bears this mark to stop, and ends it where it does not in time. It cannot be started again for as
/// long as what this gives is held.
pub(crate) fn off(folder: &Folder, uuid: Uuid) -> Result<File, MakeError> {
    end(folder, uuid, GRACE)
}

/// The same, at once.
pub(crate) fn cut(folder: &Folder, uuid: Uuid) -> Result<File, MakeError> {
    end(folder, uuid, Duration::ZERO)
}

fn end(folder: &Folder, uuid: Uuid, grace: Duration) -> Result<File, MakeError> {
    let lock = folder.lock().doing("lock it")?;
    // Whoever had the lock before may have put another machine there.
    if folder.record().doing("read what it is")?.marks.uuid != uuid {
        return Err(MakeError::NotOurs { machine: folder.name(), expected: uuid });
    }
    let boot = folder.boot();
    if let Some(Boot { init, .. }) = &boot {
        let stopped = grace > Duration::ZERO && ask(folder, init, grace).doing("ask it to stop")?;
        if !stopped && !init.end(Signal::KILL, END).doing("end it")? {
            return Err(MakeError::Refused("its processes do not end".into()));
        }
    }
    // A start that was cut off may have made some and written down none.
    let mut groups = Hierarchies::look().groups(uuid);
    groups.extend(boot.into_iter().flat_map(|boot| boot.cgroups));
    limits::end(&groups).doing("end its processes")?;
    limits::remove(&groups).doing("remove its control groups")?;
    folder.forget_boot().doing("forget that it ran")?;
    Ok(lock)
}

/// Asks a machine to stop, in the words of its init; whether it did in time.
///
/// Ours takes the usual signal. Others take that one for something else: systemd starts itself anew. What they all know
/// is Ctrl-Alt-Del, by which they go down in order for a reboot, and in a pid namespace to reboot is to end. One that has
/// only just begun does not hear it, and is told again.
fn ask(folder: &Folder, init: &Process, grace: Duration) -> io::Result<bool> {
    const PAUSE: Duration = Duration::from_secs(1);
    if folder.record().is_ok_and(|record| record.shares_programs) {
        return init.end(Signal::TERM, grace);
    }
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline {
        if init.end(Signal::INT, PAUSE)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The last lines of a log, for those who look for what went wrong.
pub(crate) fn last_lines(path: &Path) -> Vec<String> {
    tail(&File::open(path).and_then(inside::end_of).unwrap_or_default())
}

fn tail(text: &str) -> Vec<String> {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(LINES)).map(|line| (*line).to_owned()).collect()
}
