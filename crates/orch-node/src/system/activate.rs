//! Running what a system brings for going over to it, so that whoever takes over from a dead watcher knows whether it still
//! runs, and can end it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process_group};
use serde::{Deserialize, Serialize};

use super::error::SystemError;
use super::places::Places;
use crate::error::in_full;
use crate::state::start_of;
use crate::tool::Tool;
use crate::worker::say;

const RUNNING: &str = "activation.json";
const LOG: &str = "rollout.log";
/// A log that is longer when a rollout begins starts anew.
const LONGEST_LOG: u64 = 4 << 20;
/// How long a process may take to be gone once it was killed.
const DYING: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(5);

/// What is asked of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// Run it, until the next boot.
    Test,
    /// Boot it by default.
    Boot,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Attempt {
    /// How it ended; nothing where it had to be ended at its time limit.
    pub(super) status: Option<ExitStatus>,
    /// The lines that it said.
    pub(super) said: Vec<String>,
    /// What it was, for people.
    what: String,
    limit: Duration,
}

/// A process, known for ever by its number and its start.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) started: u64,
}

impl Process {
    pub(super) fn this() -> Self {
        let pid = std::process::id();
        Self { pid, started: start_of(pid).unwrap_or_default() }
    }

    pub(super) fn lives(self) -> bool {
        start_of(self.pid) == Some(self.started)
    }
}

impl Verb {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Boot => "boot",
        }
    }
}

impl Attempt {
    pub(super) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    pub(super) fn code(&self) -> Option<i32> {
        self.status?.code()
    }

    /// How it ended, in words.
    pub(super) fn words(&self) -> String {
        match self.status {
            Some(status) => format!("{} ended with {status}", self.what),
            None => format!("{} did not end within {} s", self.what, self.limit.as_secs()),
        }
    }
}

/// The program by which a system is gone over to.
pub(super) fn program(places: &Places, system: &str) -> PathBuf {
    places.at(system).join("bin/switch-to-configuration")
}

/// Runs it within a limit. What it says goes to the log too, as far as there is room.
pub(super) fn run(
    places: &Places,
    system: &str,
    verb: Verb,
    limit: Duration,
) -> Result<Attempt, SystemError> {
    let program = program(places, system);
    let own = std::process::id().to_string();
    let args = ["system", "activate", &own, &program.to_string_lossy(), verb.as_str()];
    log(places, &format!("{} {}", program.display(), verb.as_str()));
    let ended = Tool::this().run(&args, &[], limit).map_err(SystemError::file("run", &program))?;
    // Only what was cut short is to be found by who comes after.
    let _ = fs::remove_file(places.passing(RUNNING));
    let said: Vec<String> = [&ended.stdout, &ended.stderr]
        .into_iter()
        .flat_map(|text| String::from_utf8_lossy(text).lines().map(String::from).collect::<Vec<_>>())
        .collect();
    for line in &said {
        log(places, line);
    }
    let what = format!("`{} {}`", program.display(), verb.as_str());
    let attempt = Attempt { status: ended.status, said, what, limit };
    log(places, &attempt.words());
    Ok(attempt)
}

/// Becomes what is run, as the process that [`run`] starts. It writes down who it is first, and where whoever started it is
/// gone by then, somebody else decides already: nothing is run.
pub(super) fn become_it(places: &Places, parent: u32, program: &str, verb: &str) -> Result<(), SystemError> {
    let path = places.passing(RUNNING);
    let text = serde_json::to_vec(&Process::this()).expect("what orch defines can be written as JSON");
    // Where there is no room for it, a way back is still better than none.
    if let Err(error) = fs::write(&path, text) {
        say(&format!("`{}` cannot be written: {error}", path.display()));
    }
    let now = getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if now != Some(parent) {
        return Err(SystemError::Unwatched);
    }
    let failed = Command::new(program).arg(verb).exec();
    Err(SystemError::file("run", program.as_ref())(failed))
}

/// Ends what a watcher that is gone has left running.
pub(super) fn end_leftover(places: &Places) {
    let path = places.passing(RUNNING);
    let Some(left) = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Process>(&text).ok())
    else {
        return;
    };
    // Its number is given again only once nobody of its group is left.
    let is_its_group = start_of(left.pid).is_none_or(|started| started == left.started);
    if let Some(group) = i32::try_from(left.pid).ok().and_then(Pid::from_raw).filter(|_| is_its_group) {
        // Where nobody is left, that is what was wanted.
        let _ = kill_process_group(group, Signal::KILL);
        gone(left);
    }
    let _ = fs::remove_file(path);
}

/// Waits until a process is gone, but not for ever.
pub(super) fn gone(process: Process) {
    let deadline = Instant::now() + DYING;
    while process.lives() && Instant::now() < deadline {
        thread::sleep(TICK);
    }
}

/// Begins the log of a rollout.
pub(super) fn begin_log(places: &Places) {
    let path = places.kept(LOG);
    if fs::metadata(&path).is_ok_and(|about| about.len() > LONGEST_LOG) {
        let _ = fs::remove_file(path);
    }
}

/// The log of rollouts, to be written on.
pub(super) fn log_file(places: &Places) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o600).open(places.kept(LOG))
}

/// Writes a line to the log of rollouts. There may be no room for it, which is no reason to stop.
pub(super) fn log(places: &Places, line: &str) {
    let line = format!("{:.3} {}\n", jiff::Timestamp::now(), orch_model::printable(line));
    if let Err(error) = log_file(places).and_then(|mut log| log.write_all(line.as_bytes())) {
        say(&in_full(&error));
    }
}

/// The last lines of the log.
pub(super) fn last_lines(places: &Places, count: usize) -> Vec<String> {
    let text = fs::read(places.kept(LOG)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].iter().map(ToString::to_string).collect()
}
