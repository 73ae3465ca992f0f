//! The way into a machine that has no SSH server: straight into its namespaces, with the same words as over SSH.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use orch_run::{Ended, Target, TransportError, withhold};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::HELPER;
use super::enter::ENTER;
use super::record::Folder;
use super::way::unreachable;
use crate::heard::Heard;
use crate::remote::{Bridge, Remote, RunAs};

/// A program run in a machine's namespaces.
pub(super) struct Direct {
    folder: Folder,
    program: PathBuf,
    target: Target,
}

impl Direct {
    pub(super) const fn new(folder: Folder, program: PathBuf, target: Target) -> Self {
        Self { folder, program, target }
    }

    /// What runs a program in the machine.
    pub(super) fn command_line(&self, argv: &[String]) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![
            self.program.clone().into(),
            HELPER.into(),
            ENTER.into(),
            self.folder.path().as_os_str().to_owned(),
        ];
        line.extend(argv.iter().map(OsString::from));
        line
    }
}

/// Work that a machine does for us. Let go of before it has answered, the machine is told to end it, by a process that
/// outlives this one: the work is not a child of ours, and would go on.
pub(super) struct Work<'d> {
    direct: &'d Direct,
    cancel: Option<Vec<String>>,
}

impl<'d> Work<'d> {
    /// Work that this command line cancels.
    pub(super) const fn begin(direct: &'d Direct, cancel: Vec<String>) -> Self {
        Self { direct, cancel: Some(cancel) }
    }

    /// It has answered.
    pub(super) fn end(mut self) {
        self.cancel = None;
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let Some(cancel) = self.cancel.take() else { return };
        let line = self.direct.command_line(&cancel);
        let mut command = std::process::Command::new(&line[0]);
        withhold(&mut command)
            .args(&line[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A machine that cannot be told goes on until its own limit.
        let _ = command.process_group(0).spawn();
    }
}

impl Bridge for Direct {
    fn bridge(&self, argv: &[String]) -> Result<Command, TransportError> {
        let line = self.command_line(argv);
        let mut command = Command::new(&line[0]);
        withhold(command.as_std_mut());
        command.args(&line[1..]).kill_on_drop(true).process_group(0);
        Ok(command)
    }
}

#[async_trait]
impl Remote for Direct {
    /// Programs run as root in any case: there is no account to come in with.
    async fn run(
        &self,
        argv: &[String],
        _who: RunAs,
        input: &[u8],
        limit: Duration,
    ) -> Result<Ended, TransportError> {
        let failed = |error: std::io::Error| unreachable(&self.target, &error.to_string());
        let mut command = self.bridge(argv)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let mut stdin = child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin.take() {
                // A program that ends without reading it all has its reasons.
                let _ = stdin.write_all(input).await;
            }
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let all = async {
            let ((), stdout, stderr) = tokio::join!(feed, Heard::all_of(stdout), Heard::all_of(stderr));
            child.wait().await.map(|status| (status, stdout, stderr))
        };
        match tokio::time::timeout(limit, all).await {
            Ok(ended) => {
                let (status, stdout, stderr) = ended.map_err(failed)?;
                let notes = [stdout.note("standard output"), stderr.note("standard error")];
                let notes: String = notes.into_iter().flatten().collect();
                let stderr = [stderr.bytes, notes.into_bytes()].concat();
                Ok(Ended { code: status.code(), stdout: stdout.bytes, stderr })
            }
            Err(_) => Err(unreachable(&self.target, &format!("no answer within {limit:?}"))),
        }
    }
}
