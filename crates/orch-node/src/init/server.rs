//! The SSH server of a local node: one, and again when it dies, after a pause that grows.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
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

pub(super) struct Server {
    program: Option<PathBuf>,
    args: Vec<String>,
    log: PathBuf,
    running: Option<(Pid, Instant)>,
    pause: Duration,
    due: Instant,
}

impl Server {
    /// The server that the settings ask for, not started yet.
    pub(super) fn of(settings: &Settings) -> Self {
        let is_wanted = settings.sshd_wanted.exists();
        let program = settings.sshd.iter().find(|path| is_wanted && path.is_file()).cloned();
        Self {
            program,
            args: settings.sshd_args.clone(),
            log: settings.sshd_log.clone(),
            running: None,
            pause: FIRST_PAUSE,
            due: Instant::now(),
        }
    }

    /// When it is to be started next; nothing where it runs or is not wanted.
    pub(super) fn next_start(&self) -> Option<Instant> {
        (self.program.is_some() && self.running.is_none()).then_some(self.due)
    }

    pub(super) fn start_if_due(&mut self, log: &mut Log) {
        let is_due = self.next_start().is_some_and(|due| due <= Instant::now());
        let Some(program) = self.program.clone().filter(|_| is_due) else { return };
        if let Some(other) = ssh_server::running() {
            // Somebody started one by hand, or one outlived its parent: two would fight for the port.
            log.say(&format!("an SSH server runs already, as process {}", other.as_raw_nonzero()));
            return self.pause();
        }
        match start(&program, &self.args, &self.log) {
            Ok(pid) => {
                log.say(&format!("the SSH server is started, as process {}", pid.as_raw_nonzero()));
                self.running = Some((pid, Instant::now()));
            }
            Err(error) => {
                log.say(&format!("the SSH server cannot be started: {error}"));
                self.pause();
            }
        }
    }

    /// Is told of every process that ended.
    pub(super) fn notice_end(&mut self, pid: Pid, how: &str, log: &mut Log) {
        let Some((_, since)) = self.running.filter(|(running, _)| *running == pid) else { return };
        log.say(&format!("the SSH server has ended {how}"));
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

fn start(program: &Path, args: &[String], log: &Path) -> io::Result<Pid> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create("/run/sshd")?;
    let log = File::options().append(true).create(true).open(log)?;
    let child = Command::new(program)
        .args(args)
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
