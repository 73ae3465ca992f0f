//! A program run on a node over a connection of its own, that nothing else shares.
//!
//! Whoever asks whether a node can still be reached must not ask over a connection that was there before.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::Identity;
use orch_run::{Ended, TransportError, withhold};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::connection::line;
use super::refusal::Refusal;
use crate::heard::Heard;
use crate::remote::{Remote, RunAs};

/// The exit code of `ssh` where there is no connection, or none any more.
const NO_CONNECTION: i32 = 255;

/// A node that is connected to anew for every program.
pub(super) struct Fresh {
    pub(super) node: Identity,
    pub(super) sudo: bool,
    pub(super) ssh: PathBuf,
    pub(super) config: PathBuf,
    pub(super) alias: String,
}

/// An `ssh` with this configuration. The shell that it runs proxies by must be one that reads our quotes.
pub(super) fn command(ssh: &Path, config: &Path) -> Command {
    let mut command = Command::new(ssh);
    withhold(command.as_std_mut());
    command.arg("-F").arg(config).env("SHELL", "/bin/sh").process_group(0).kill_on_drop(true);
    command
}

impl Fresh {
    async fn speak(&self, line: &str, input: &[u8]) -> Result<Ended, TransportError> {
        let unspoken = |error| Refusal::unusable(format!("ssh cannot be run here: {error}")).of(&self.node);
        let mut command = command(&self.ssh, &self.config);
        command.args(["-o", "ControlMaster=no", "-o", "ControlPath=none", "--", &self.alias, line]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(unspoken)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program that ends without reading it all has its reasons.
                let _ = stdin.write_all(input).await;
            }
        };
        let ((), stdout, stderr) = tokio::join!(feed, Heard::all_of(stdout), Heard::all_of(stderr));
        let status = child.wait().await.map_err(unspoken)?;
        if status.code() == Some(NO_CONNECTION) {
            return Err(Refusal::said(&String::from_utf8_lossy(&stderr.bytes)).of(&self.node));
        }
        Ok(Ended { code: status.code(), stdout: stdout.bytes, stderr: stderr.bytes })
    }
}

#[async_trait]
impl Remote for Fresh {
    async fn run(
        &self,
        argv: &[String],
        who: RunAs,
        input: &[u8],
        limit: Duration,
    ) -> Result<Ended, TransportError> {
        let line = line(&self.node, self.sudo, argv, who)?;
        let late = |_| TransportError::Unreachable {
            node: self.node.clone(),
            why: format!("`{}` did not end within {limit:?}", orch_model::printable(&argv[0])),
            evidence: Vec::new(),
        };
        tokio::time::timeout(limit, self.speak(&line, input)).await.map_err(late)?
    }
}
