//! Who watches over a rollout: a process that outlives the connection that brought the order, and that does not end with
//! one kill.
//!
//! Where systemd runs, it is a unit that systemd starts again. Elsewhere they are two, each in a session of its own: one
//! does the work, the other waits for its end and then takes its place; whoever is at work starts another second.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::activate::{Process, end_leftover, gone, log, log_file};
use super::clock::uptime_ms;
use super::cut::{CUT, is_of_all};
use super::error::SystemError;
use super::places::Places;
use super::record;
use super::work::carry_on;
use crate::error::in_full;
use crate::node::Node;
use crate::push::SELF;
use crate::tool::FOLDERS;

const LOCK: &str = "work.lock";
const WATCHER: &str = "watcher.json";
const UNIT: &str = "orch-rollout";
/// How long a watcher may take until it watches.
const STARTING: Duration = Duration::from_secs(10);
/// Whoever looks whether somebody watches has the lock for a moment.
const PATIENCE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(5);
/// Between two tries to have a second one.
const PAUSE: Duration = Duration::from_millis(200);
const SYSTEMD_LIMIT: Duration = Duration::from_secs(30);

/// How a watcher was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is the first, and wants a second.
    First,
    /// Somebody else starts it again.
    Alone,
    /// It waits for the end of another: its number and its start.
    After(u32, u64),
}

/// Whether somebody watches.
pub(super) fn is_watched(places: &Places) -> bool {
    let file = File::options().write(true).open(places.passing(LOCK));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Has somebody watch over a rollout, and comes back when that is so or nothing is left to watch over. One who watches
/// already is left alone.
pub(super) fn start(node: &Node, id: &str) -> Result<(), SystemError> {
    let places = Places::of(node);
    places.make_passing()?;
    let has_unit = node.has("/run/systemd/system") && start_unit(node, id);
    let standing = if is_of_all() { Standing::Alone } else { Standing::First };
    let child = if has_unit { None } else { Some(spawn(&places, id, standing, std::env::var_os(CUT))?) };
    let begun = wait_until_watched(&places, id);
    if let Some(mut child) = child {
        // It is nobody's child once this process has ended; until then it is to leave no remains.
        thread::spawn(move || child.wait());
    }
    begun
}

fn wait_until_watched(places: &Places, id: &str) -> Result<(), SystemError> {
    let deadline = Instant::now() + STARTING;
    while Instant::now() < deadline {
        let rollout = record::load(places)?;
        let is_over = rollout.is_none_or(|rollout| rollout.order.id != id || rollout.has_ended());
        if is_over || is_watched(places) {
            return Ok(());
        }
        thread::sleep(TICK);
    }
    Err(SystemError::Unwatched)
}

/// Has systemd run it, and again when it dies. Whether that worked.
fn start_unit(node: &Node, id: &str) -> bool {
    let Some(run) = node.tool("systemd-run") else { return false };
    let Ok(program) = std::env::current_exe() else { return false };
    // A name of its own: one that ends, or is about to be started again, would be in the way. Only one of them works.
    let unit = format!("--unit={UNIT}-{}-{}", uptime_ms(), std::process::id());
    let program = program.to_string_lossy();
    let args = [
        "--quiet",
        "--collect",
        "--no-ask-password",
        "--service-type=exec",
        "--property=Restart=always",
        "--property=RestartPreventExitStatus=0",
        "--property=RestartSec=200ms",
        "--property=StartLimitIntervalSec=0",
        &unit,
        "--",
        &program,
        "system",
        "watch",
        "--alone",
        id,
    ];
    run.run(&args, &[], SYSTEMD_LIMIT).is_ok_and(|ended| ended.is_success())
}

/// Starts a watcher that has nothing of this process but its program.
fn spawn(places: &Places, id: &str, standing: Standing, cut: Option<OsString>) -> Result<Child, SystemError> {
    let mut command = Command::new(SELF);
    command.arg0("orch-node").args(["system", "watch"]);
    match standing {
        Standing::First => {}
        Standing::Alone => drop(command.arg("--alone")),
        Standing::After(pid, started) => drop(command.arg("--after").arg(format!("{pid}:{started}"))),
    }
    // What it says when it dies of a mistake is to be found.
    let said = log_file(places).map_or_else(|_| Stdio::null(), Stdio::from);
    let child = command
        .arg(id)
        .env_clear()
        .env("PATH", FOLDERS.join(":"))
        .envs(cut.map(|cut| (CUT, cut)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .spawn();
    child.map_err(SystemError::file("start", Path::new(SELF)))
}

/// Watches over a rollout until it has ended.
pub(super) fn watch(node: &Node, id: &str, standing: Standing) -> Result<ExitCode, SystemError> {
    // It fails only for the leader of a group, whom systemd has put there.
    let _ = rustix::process::setsid();
    let places = Places::of(node);
    if let Standing::After(pid, started) = standing {
        while (Process { pid, started }).lives() {
            wait_for_end(pid);
        }
    }
    let Some(_lock) = take(&places)? else { return Ok(ExitCode::SUCCESS) };
    let Some(rollout) =
        record::load(&places)?.filter(|rollout| rollout.order.id == id && !rollout.has_ended())
    else {
        return Ok(ExitCode::SUCCESS);
    };
    end_leftover(&places);
    if standing != Standing::Alone {
        have_a_second(places.clone(), id.into());
    }
    carry_on(node, rollout);
    Ok(ExitCode::SUCCESS)
}

/// Waits for the end of a process, of whichever start.
fn wait_for_end(pid: u32) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    if let Ok(end) = pidfd_open(pid, PidfdFlags::empty()) {
        // Whatever wakes it, the caller looks again.
        let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], None);
    }
}

/// The right to work on a rollout, which is gone with its holder; nothing where another has it. Whoever had it before is
/// gone when this comes back: the kernel takes locks from the dying before they are dead.
fn take(places: &Places) -> Result<Option<File>, SystemError> {
    let path = places.passing(LOCK);
    let file = File::options().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(SystemError::file("open", &path))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(TICK),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(SystemError::file("lock", &path)(error)),
        }
    }
    let path = places.passing(WATCHER);
    let before: Option<Process> = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if let Some(before) = before {
        gone(before);
    }
    let text = serde_json::to_vec(&Process::this()).expect("what orch defines can be written as JSON");
    if let Err(error) = fs::write(&path, text) {
        log(places, &format!("`{}` cannot be written: {error}", path.display()));
    }
    Ok(Some(file))
}

/// Has another process wait for the end of this one, for as long as this one lives.
fn have_a_second(places: Places, id: String) {
    let Process { pid, started } = Process::this();
    thread::spawn(move || {
        loop {
            match spawn(&places, &id, Standing::After(pid, started), None) {
                // It ends before this one only where somebody ends it.
                Ok(mut second) => drop(second.wait()),
                Err(error) => log(&places, &in_full(&error)),
            }
            thread::sleep(PAUSE);
        }
    });
}
