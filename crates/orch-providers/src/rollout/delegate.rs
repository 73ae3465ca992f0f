//! Rollouts that the user's own programs do: `nixos-rebuild`, and `nixos-anywhere` for a machine without NixOS.
//!
//! They are run by their argv with the way that orch knows, and are believed in nothing: what is told is what was read of
//! the node afterwards.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use orch_model::StorePath;
use orch_model::system::{SystemQuestion, SystemView};
use orch_run::{TransportError, withhold};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::Instant;

use super::{Rollout, judge};

/// How many of the last lines of a program are kept.
const LINES: usize = 12;

/// How long what it left behind may hold its stream open after its end.
const GRACE: Duration = Duration::from_secs(2);

/// How a node is gone to by a program that is not ours.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    /// The configuration of `ssh` that knows it.
    pub(crate) config: PathBuf,
    /// The name by which that knows it.
    pub(crate) alias: String,
    /// The account.
    pub(crate) user: String,
    /// Its address, where no other machine is on the way.
    pub(crate) address: Option<String>,
    /// The port of its SSH server.
    pub(crate) port: u16,
    /// The private key.
    pub(crate) identity: PathBuf,
}

/// A program that does it.
pub(super) struct Tool {
    pub(super) name: &'static str,
    args: Vec<OsString>,
    environment: Option<(&'static str, OsString)>,
    /// What to do where it fails as a whole.
    hint: &'static str,
}

impl Tool {
    /// `nixos-rebuild switch` with a system that was built here. `sudo` is what it needs on the node.
    pub(super) fn rebuild(way: &Outside, system: &StorePath, substitutes: bool) -> Result<Self, String> {
        let config = way.config.to_str().filter(|path| !path.contains(char::is_whitespace));
        // Nix takes these options apart at every blank.
        let config = config.ok_or("`NIX_SSHOPTS` cannot name a configuration whose path has blanks in it")?;
        let mut args: Vec<OsString> =
            ["switch", "--no-reexec", "--store-path", system.as_str()].map(Into::into).into();
        args.extend(["--target-host".into(), way.alias.clone().into()]);
        if way.user != "root" {
            args.push("--sudo".into());
        }
        if substitutes {
            args.push("--use-substitutes".into());
        }
        Ok(Self {
            name: "nixos-rebuild",
            args,
            environment: Some(("NIX_SSHOPTS", format!("-F {config}").into())),
            hint: "it must know `--store-path`, as newer ones do",
        })
    }

    /// `nixos-anywhere` with a system and the script for its disks.
    pub(super) fn anywhere(way: &Outside, disks: &StorePath, system: &StorePath) -> Result<Self, String> {
        let address = way.address.as_ref();
        let address =
            address.ok_or("`nixos-anywhere` is not taken through other machines; give it another way")?;
        let args = ["--store-paths", disks.as_str(), system.as_str(), "--copy-host-keys"].map(Into::into);
        let mut args: Vec<OsString> = args.into();
        args.extend(["-i".into(), way.identity.clone().into()]);
        args.extend(["-p", &way.port.to_string()].map(Into::into));
        args.extend(["--target-host".into(), format!("{}@{address}", way.user).into()]);
        Ok(Self { name: "nixos-anywhere", args, environment: None, hint: "run it by hand to see more" })
    }

    /// Runs it to its end within a limit. In words, how it failed, and its last lines.
    async fn run(
        &self,
        folder: Option<&Path>,
        tell: impl Fn(&str),
        limit: Duration,
    ) -> Result<(), (String, Vec<String>)> {
        let name = self.name;
        let absent = |error| (format!("`{name}` cannot be run here: {error}"), Vec::new());
        let mut group = Group::of(self.start(folder).map_err(absent)?);
        let mut last: Vec<String> = Vec::new();
        let said = group.child.stderr.take();
        let ended = {
            let mut hear = std::pin::pin!(hear(said, |line| {
                tell(&line);
                last.push(line);
                if last.len() > LINES {
                    last.remove(0);
                }
            }));
            let mut is_heard = false;
            let ended = tokio::time::timeout(limit, async {
                tokio::select! {
                    status = group.child.wait() => status,
                    () = &mut hear => {
                        is_heard = true;
                        group.child.wait().await
                    }
                }
            });
            let ended = ended.await;
            if ended.is_err() {
                group.end().await;
            }
            // Nobody holds the stream any more once all of them have ended; what was left behind is not waited for.
            if !is_heard {
                let _ = tokio::time::timeout(GRACE, hear).await;
            }
            ended
        };
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err((format!("`{name}` failed ({status}); {}", self.hint), last)),
            Ok(Err(error)) => Err((format!("`{name}` was lost: {error}"), last)),
            Err(_) => Err((format!("`{name}` took longer than {limit:?}"), last)),
        }
    }

    fn start(&self, folder: Option<&Path>) -> std::io::Result<Child> {
        let program = folder.map_or_else(|| PathBuf::from(self.name), |folder| folder.join(self.name));
        let mut command = Command::new(program);
        withhold(command.as_std_mut());
        command.args(&self.args).envs(self.environment.clone());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true).spawn()
    }
}

/// A program with all that it starts. Whoever lets go of it before its end ends all of them.
struct Group {
    child: Child,
    pid: Option<Pid>,
}

impl Group {
    fn of(child: Child) -> Self {
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Self { child, pid }
    }

    /// Ends all of them, and waits for the first.
    async fn end(&mut self) {
        self.kill();
        let _ = self.child.wait().await;
    }

    fn kill(&mut self) {
        // Once it was waited for, its id may be another's.
        if let (Some(_), Some(pid)) = (self.child.id(), self.pid) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Hands on what a program says, line by line and fit for a terminal.
async fn hear(said: Option<ChildStderr>, mut each: impl FnMut(String)) {
    let Some(said) = said else { return };
    let mut lines = BufReader::new(said).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        each(orch_model::printable(&line).into_owned());
    }
}

impl Rollout<'_> {
    /// Has `nixos-rebuild` do it, and reads what came of it.
    pub(super) async fn rebuild(
        &self,
        view: &SystemView,
        system: &StorePath,
    ) -> Result<Vec<String>, TransportError> {
        let tool = self.outside().await.and_then(|way| {
            Tool::rebuild(&way, system, view.substitutes).map_err(|why| self.failed(why, Vec::new()))
        })?;
        self.is_still_ours()?;
        self.delegated(&tool, system, self.settings.limits.activate).await
    }

    /// Has `nixos-anywhere` install NixOS on a machine that has none, and reads what came of it.
    pub(super) async fn install(&self, system: &StorePath) -> Result<Vec<String>, TransportError> {
        let refuse = |why: String| self.failed(why, Vec::new());
        let (systems, limit) = (&self.settings.systems, self.settings.limits.build);
        let disks = systems.disks(system, &self.target.progress, limit).await;
        let disks = disks.map_err(|why| self.unbuilt(why))?.ok_or_else(|| {
            refuse(
                "its modules do not say what its disks are to be: `system.build.diskoScript` is missing, which \
                 disko makes"
                    .into(),
            )
        })?;
        let way = self.outside().await?;
        let tool = Tool::anywhere(&way, &disks, system).map_err(refuse)?;
        self.is_still_ours()?;
        self.delegated(&tool, system, self.settings.limits.reboot).await
    }

    async fn outside(&self) -> Result<Outside, TransportError> {
        let way = self.road.outside().await?;
        way.ok_or_else(|| {
            self.failed("programs of others reach it by SSH only, and it has none".into(), Vec::new())
        })
    }

    /// Runs a program for as long as there is time, and reads the node until it is what was asked for or `patience` is over.
    async fn delegated(
        &self,
        tool: &Tool,
        system: &StorePath,
        patience: Duration,
    ) -> Result<Vec<String>, TransportError> {
        self.begin();
        self.say(&format!("`{}` is at it", tool.name));
        let progress = &self.target.progress;
        let ran = tool.run(self.settings.programs.as_deref(), |line| progress.say(line), self.left()).await;
        let patience = if ran.is_ok() { patience.min(self.left()) } else { Duration::ZERO };
        match (ran, self.read_until(system, Instant::now() + patience).await) {
            (Ok(()), Ok(view)) if judge::is_on(&view, system) => Ok(vec![judge::read(&view)]),
            (Ok(()), Ok(view)) => {
                let why = format!(
                    "`{}` called it done, but that is not what was read: {}",
                    tool.name,
                    judge::read(&view)
                );
                Err(self.failed(why, Vec::new()))
            }
            (Ok(()), Err(error)) => {
                let why =
                    format!("`{}` called it done, and the node could not be read since: {error}", tool.name);
                Err(self.failed(why, error.evidence().to_vec()))
            }
            (Err((why, evidence)), Ok(view)) => {
                Err(self.failed(format!("{why}; {}", judge::read(&view)), evidence))
            }
            (Err((why, evidence)), Err(error)) => {
                Err(self.failed(format!("{why}; the node could not be read since: {error}"), evidence))
            }
        }
    }

    /// Reads the node over a new connection, again and again while it is not what was asked for and there is time.
    async fn read_until(&self, system: &StorePath, deadline: Instant) -> Result<SystemView, TransportError> {
        loop {
            let read = async {
                let node = self.road.anew().await?;
                let limit = self.settings.limits.answer;
                self.asking(&*node).about(&["system", "look"], &SystemQuestion::default(), limit).await
            };
            let read: Result<SystemView, TransportError> = read.await;
            let is_done = read.as_ref().is_ok_and(|view| judge::is_on(view, system));
            if is_done || Instant::now() + self.settings.limits.pause >= deadline {
                return read;
            }
            tokio::time::sleep(self.settings.limits.pause).await;
        }
    }
}
