//! One connection to one hop: an `ssh` in the background that others share by its control socket.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openssh::Session;
use orch_run::withhold;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

use super::folder;
use super::kept;
use super::refusal::{Refusal, chain, tail};
use super::roster::{Files, Roster};
use super::settings::SshSettings;
use super::way::Hop;

/// How long a living connection may take to answer on its own socket.
const LOCAL_ANSWER: Duration = Duration::from_secs(2);

/// A connection that is there. It ends with the last of those who share it, unless it is kept for the next run.
pub(super) struct Master {
    pub(super) hop: Hop,
    pub(super) session: Session,
    /// Leave to run a program over it.
    pub(super) channels: Semaphore,
    files: Files,
    ssh: PathBuf,
    /// Whether it was ended: its socket may be another one's by now.
    ended: AtomicBool,
    /// The folder of its socket is there for as long as it is.
    _roster: Arc<Roster>,
}

impl Master {
    /// Connects, or says why there is no connection. One try, which ends by `limit`.
    pub(super) async fn connect(
        roster: &Arc<Roster>,
        hop: &Hop,
        settings: &SshSettings,
        limit: Duration,
    ) -> Result<Self, Refusal> {
        let unknown = || Refusal::unusable(format!("`{}` is not known", hop.alias));
        let files = roster.files(&hop.alias).ok_or_else(unknown)?;
        let local = |error| Refusal::unusable(format!("ssh cannot be run here: {error}"));
        let _making = if files.is_kept {
            let lock = kept::lock(&files.socket, limit).await.map_err(local)?;
            let lock = lock.ok_or_else(|| Refusal::passing("somebody else is connecting to it", ""))?;
            let found = Self::over(roster, hop, settings, files.clone());
            if found.is_alive().await {
                return Ok(found);
            }
            Some(lock)
        } else {
            None
        };
        let launch = Launch::start(&settings.ssh, hop, &files).map_err(local)?;
        let ended = tokio::time::timeout(limit, launch.ended()).await;
        let log = fs::read_to_string(&files.log).unwrap_or_default();
        match ended {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Err(Refusal::said(&log)),
            Ok(Err(error)) => return Err(local(error)),
            Err(_) => {
                return Err(Refusal::passing(format!("ssh did not get through within {limit:?}"), &log));
            }
        }
        let master = Self::over(roster, hop, settings, files);
        match master.check().await {
            Ok(()) => Ok(master),
            Err(why) => Err(Refusal::passing(why, &log)),
        }
    }

    /// The connection behind a socket, whether it is there or not.
    fn over(roster: &Arc<Roster>, hop: &Hop, settings: &SshSettings, files: Files) -> Self {
        Self {
            hop: hop.clone(),
            session: Session::resume_mux(files.socket.as_path().into(), None),
            channels: Semaphore::new(settings.channels.max(1)),
            files,
            ssh: settings.ssh.clone(),
            ended: AtomicBool::new(false),
            _roster: Arc::clone(roster),
        }
    }

    /// The `ssh` program, its configuration, and the name by which that knows the hop.
    pub(super) fn way_in(&self) -> (&Path, &Path, &str) {
        (&self.ssh, &self.files.config, &self.hop.alias)
    }

    /// Lets go of it: it ends, or is kept for the next run.
    pub(super) fn let_go(&self) {
        if !self.files.is_kept {
            self.end();
        }
    }

    /// Whether it is still there, as far as this machine knows.
    pub(super) async fn is_alive(&self) -> bool {
        self.check().await.is_ok()
    }

    async fn check(&self) -> Result<(), String> {
        match tokio::time::timeout(LOCAL_ANSWER, self.session.check()).await {
            Ok(answer) => answer.map_err(|error| chain(&error)),
            Err(_) => Err(format!("its own ssh did not answer within {LOCAL_ANSWER:?}")),
        }
    }

    /// What `ssh` said about it lately.
    pub(super) fn said(&self) -> Vec<String> {
        tail(&fs::read_to_string(&self.files.log).unwrap_or_default())
    }

    /// Ends it, whoever still uses it. The next one to the same hop must not be made before.
    pub(super) fn end(&self) {
        if self.ended.swap(true, Ordering::SeqCst) {
            return;
        }
        // One that does not answer has ended, or ends by itself when it is idle.
        let _ = terminate(&self.files.socket);
        let _ = fs::remove_file(&self.files.socket);
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// An `ssh` that has not got through yet. Whoever lets go of it ends it, with the proxies that it started.
struct Launch {
    child: Child,
    group: Option<Pid>,
}

impl Launch {
    fn start(ssh: &Path, hop: &Hop, files: &Files) -> io::Result<Self> {
        // A socket that a dead connection left would keep the new one from being shared.
        match fs::remove_file(&files.socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Proxies write to where `ssh` writes, and what they say is often what tells most.
        let log = folder::private(&files.log)?;
        let mut command = Command::new(ssh);
        withhold(command.as_std_mut());
        let child = command
            .arg("-F")
            .arg(&files.config)
            .args(["-M", "-N", "-f", "-E"])
            .arg(&files.log)
            .args(["--", &hop.alias])
            // The shell that `ssh` runs proxies by must be one that reads our quotes.
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, group })
    }

    /// Waits until it got through and went into the background, or gave up.
    async fn ended(mut self) -> io::Result<bool> {
        let status = self.child.wait().await?;
        self.group = None;
        Ok(status.success())
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        // It was not waited for, so its id is still its own.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Tells the `ssh` behind a control socket to end at once. The library can only ask it not to take new work, and then it
/// stays for as long as a program on the node runs.
fn terminate(socket: &Path) -> io::Result<()> {
    const HELLO: [u8; 12] = [0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 4];
    const TERMINATE: [u8; 12] = [0, 0, 0, 8, 0x10, 0, 0, 0x05, 0, 0, 0, 0];
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(LOCAL_ANSWER))?;
    stream.set_write_timeout(Some(LOCAL_ANSWER))?;
    stream.write_all(&HELLO)?;
    stream.write_all(&TERMINATE)?;
    // It says hello, and then the stream ends with it.
    let mut rest = [0; 64];
    while stream.read(&mut rest)? > 0 {}
    Ok(())
}
