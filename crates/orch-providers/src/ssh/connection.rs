//! A node that is connected to, for running programs on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use openssh::{Child, ChildStdin, Error as SshError, Session, Stdio};
use orch_model::Identity;
use orch_run::{Ended, TransportError};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::Instant;

use super::fresh;
use super::master::Master;
use super::quote;
use super::refusal::{Refusal, chain};
use crate::heard::Heard;
use crate::remote::{Bridge, Remote, RunAs};

/// What `ssh` says where the server has no room for another program.
const REFUSED: &str = "Session open refused";

/// How long a server may have no room for another program, and how often it is asked meanwhile.
const CROWDED: Duration = Duration::from_secs(5);
const ANOTHER_TRY: Duration = Duration::from_millis(20);

/// A node that is connected to. The connection is shared with everybody who speaks to it.
pub struct Connection {
    node: Identity,
    sudo: bool,
    master: Arc<Master>,
}

impl Connection {
    pub(super) fn new(node: Identity, sudo: bool, master: Arc<Master>) -> Self {
        Self { node, sudo, master }
    }

    /// Whether it is still there, as far as this machine knows.
    pub async fn is_alive(&self) -> bool {
        self.master.is_alive().await
    }

    /// The `ssh` program, its configuration, and the name by which that knows the node.
    pub(super) fn way_in(&self) -> (&Path, &Path, &str) {
        self.master.way_in()
    }

    fn line(&self, argv: &[String], who: RunAs) -> Result<String, TransportError> {
        line(&self.node, self.sudo, argv, who)
    }

    /// Runs one line and waits for its end.
    async fn speak(&self, line: &str, input: &[u8]) -> Result<Ended, TransportError> {
        let _channel = self.master.channels.acquire().await.expect("the semaphore is never closed");
        let mut child = self.open(line).await.map_err(|error| self.broken(&error))?;
        let (stdin, stdout, stderr) = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        let ((), stdout, stderr) =
            tokio::join!(feed(stdin, input), Heard::all_of(stdout), Heard::all_of(stderr));
        // Only now: the library lets go of the channel when it hears how the program ended, and what was still on its
        // way then is lost.
        let code = match child.wait().await {
            Ok(status) => status.code(),
            // The library makes an error of this one code.
            Err(SshError::Remote(_)) => Some(127),
            // A signal ended it, unless the connection is gone: the protocol shows both in the same way.
            Err(SshError::RemoteProcessTerminated) if self.master.is_alive().await => None,
            Err(error) => return Err(self.broken(&error)),
        };
        Ok(ended(code, stdout, stderr))
    }

    /// Opens a channel for one line. A server counts those that have just ended for a moment longer than we do, and what
    /// it refuses was not run.
    async fn open(&self, line: &str) -> Result<Child<&Session>, SshError> {
        let mut command = self.master.session.raw_command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let deadline = Instant::now() + CROWDED;
        loop {
            match command.spawn().await {
                Err(error) if Instant::now() < deadline && chain(&error).contains(REFUSED) => {
                    tokio::time::sleep(ANOTHER_TRY).await;
                }
                opened => return opened,
            }
        }
    }

    fn broken(&self, error: &SshError) -> TransportError {
        let why = match error {
            SshError::RemoteProcessTerminated | SshError::Disconnected => "the connection broke".to_owned(),
            error => format!("the connection broke: {}", chain(error)),
        };
        TransportError::Unreachable { node: self.node.clone(), why, evidence: self.master.said() }
    }
}

#[async_trait]
impl Remote for Connection {
    /// A program that does not end within its limit is let go of, and goes on: SSH cannot end it from here.
    async fn run(
        &self,
        argv: &[String],
        who: RunAs,
        input: &[u8],
        limit: Duration,
    ) -> Result<Ended, TransportError> {
        let line = self.line(argv, who)?;
        let late = |_| TransportError::Unreachable {
            node: self.node.clone(),
            why: format!("`{}` did not end within {limit:?}", orch_model::printable(&argv[0])),
            evidence: self.master.said(),
        };
        tokio::time::timeout(limit, self.speak(&line, input)).await.map_err(late)?
    }
}

impl Bridge for Connection {
    fn bridge(&self, argv: &[String]) -> Result<Command, TransportError> {
        let (ssh, config, alias) = self.way_in();
        let mut command = fresh::command(ssh, config);
        command.args(["--", alias, &self.line(argv, RunAs::Root)?]);
        Ok(command)
    }
}

/// The line for the login shell. `sudo` is followed by `env`, which says by its exit code that a program is not
/// there; `sudo` says so in words only.
pub(super) fn line(
    node: &Identity,
    sudo: bool,
    argv: &[String],
    who: RunAs,
) -> Result<String, TransportError> {
    let as_root: &[&str] = if sudo && who == RunAs::Root { &["sudo", "-n", "--", "env", "--"] } else { &[] };
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    // The program itself must be one, whatever stands in front of it.
    let checked = quote::command(&words);
    let line = checked.and_then(|_| quote::command(&[as_root, &words].concat()));
    line.map_err(|why| Refusal::unusable(why).of(node))
}

/// Gives a program its input. One that does not want all of it is no error.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin
        && stdin.write_all(input).await.is_ok()
    {
        let _ = stdin.shutdown().await;
    }
}

/// How a program ended, with a word on standard error where not all that it wrote is here.
fn ended(code: Option<i32>, stdout: Heard, stderr: Heard) -> Ended {
    let notes = [stdout.note("standard output"), stderr.note("standard error")];
    let mut said = stderr.bytes;
    for note in notes.into_iter().flatten() {
        if !said.is_empty() && !said.ends_with(b"\n") {
            said.push(b'\n');
        }
        said.extend(note.into_bytes());
    }
    Ended { code, stdout: stdout.bytes, stderr: said }
}
