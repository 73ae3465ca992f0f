//! What a local node must run: one process of each, and again when it dies, after a pause that grows.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::Settings;
use super::log::Log;
use crate::ssh_server;
use crate::tool::FOLDERS;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Whoever lived as long as this did not die of its start.
const LONG_LIFE: Duration = Duration::from_secs(10);
/// A log that is longer when its writer is started begins anew.
const LONGEST_LOG: u64 = 1 << 20;

/// One process that a local node must run.
pub(super) struct Service {
    what: What,
    /// Nothing where it is not wanted, or not there.
    program: Option<PathBuf>,
    running: Option<(Pid, Instant)>,
    pause: Duration,
    due: Instant,
}

/// What is run, and when.
struct What {
    /// As the log calls it.
    name: &'static str,
    /// It is run where this exists.
    wanted: PathBuf,
    /// Where it may be; the first that is there is run.
    programs: Vec<PathBuf>,
    /// What it is told that it is called, where that is not its path.
    called: Option<&'static str>,
    args: Vec<String>,
    log: PathBuf,
    /// A folder that must be there before.
    folder: Option<&'static str>,
    /// One that somebody else runs: two would fight.
    other: fn() -> Option<Pid>,
}

/// The SSH server that the settings ask for, not started yet.
pub(super) fn ssh_server(settings: &Settings) -> Service {
    Service::of(What {
        name: "SSH server",
        wanted: settings.sshd_wanted.clone(),
        programs: settings.sshd.clone(),
        called: None,
        args: settings.sshd_args.clone(),
        log: settings.sshd_log.clone(),
        folder: Some("/run/sshd"),
        other: ssh_server::running,
    })
}

/// What fetches the node's configuration, not started yet.
pub(super) fn node(settings: &Settings) -> Service {
    Service::of(What {
        name: "node program",
        wanted: settings.node_wanted.clone(),
        programs: settings.node.clone(),
        called: Some("orch-node"),
        args: settings.node_args.clone(),
        log: settings.node_log.clone(),
        folder: None,
        // It sees to that itself.
        other: || None,
    })
}

impl Service {
    fn of(what: What) -> Self {
        let program = what.program();
        Self { what, program, running: None, pause: FIRST_PAUSE, due: Instant::now() }
    }

    /// Looks whether it is wanted by now. What runs is not stopped by that.
    pub(super) fn look_again(&mut self) {
        self.program = self.what.program();
    }

    /// When it is to be started next; nothing where it runs, is not wanted or not there.
    pub(super) fn next_start(&self) -> Option<Instant> {
        (self.program.is_some() && self.running.is_none()).then_some(self.due)
    }

    pub(super) fn start_if_due(&mut self, log: &mut Log) {
        let is_due = self.next_start().is_some_and(|due| due <= Instant::now());
        let Some(program) = self.program.clone().filter(|_| is_due) else { return };
        let name = self.what.name;
        if let Some(other) = (self.what.other)() {
            // Somebody started one by hand, or one outlived its parent.
            log.say(&format!("an {name} runs already, as process {}", other.as_raw_nonzero()));
            return self.pause();
        }
        match self.what.start(&program) {
            Ok(pid) => {
                log.say(&format!("the {name} is started, as process {}", pid.as_raw_nonzero()));
                self.running = Some((pid, Instant::now()));
            }
            Err(error) => {
                log.say(&format!("the {name} cannot be started: {error}"));
                self.pause();
            }
        }
    }

    /// Is told of every process that ended.
    pub(super) fn notice_end(&mut self, pid: Pid, how: &str, log: &mut Log) {
        let Some((_, since)) = self.running.filter(|(running, _)| *running == pid) else { return };
        log.say(&format!("the {} has ended {how}", self.what.name));
        self.running = None;
        if since.elapsed() > LONG_LIFE {
            self.pause = FIRST_PAUSE;
        }
        self.pause();
    }

    fn pause(&mut self) {
        self.due = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

impl What {
    fn program(&self) -> Option<PathBuf> {
        let is_wanted = self.wanted.exists();
        self.programs.iter().find(|path| is_wanted && path.is_file()).cloned()
    }

    fn start(&self, program: &Path) -> io::Result<Pid> {
        if let Some(folder) = self.folder {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        let log = open_log(&self.log)?;
        let mut command = Command::new(program);
        if let Some(name) = self.called {
            command.arg0(name);
        }
        let child = command
            .args(&self.args)
            .env_clear()
            .env("PATH", FOLDERS.join(":"))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        // It is reaped with all others.
        Ok(Pid::from_child(&child))
    }
}

pub(super) fn open_log(path: &Path) -> io::Result<File> {
    let log = File::options().append(true).create(true).open(path)?;
    if log.metadata()?.len() > LONGEST_LOG {
        log.set_len(0)?;
    }
    Ok(log)
}
