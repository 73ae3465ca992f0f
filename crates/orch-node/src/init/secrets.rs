//! The secrets of a local node, put in place before what may need them is started. Another process does it, whose memory
//! is gone with it: the first one stays.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Settings;
use super::log::Log;
use crate::tool::timespec;

/// A node without its secrets is better than one that does not start.
const LIMIT: Duration = Duration::from_mins(1);

/// Puts the secrets in place, where the node holds any.
pub(super) fn put_in_place(settings: &Settings, log: &mut Log) {
    let program = settings.node.iter().find(|path| path.is_file());
    let Some(program) = program.filter(|_| settings.secrets_held.exists()) else { return };
    match unseal(program, settings) {
        Ok(true) => log.say("the secrets are in place"),
        Ok(false) => log.say("not all secrets are in place"),
        Err(error) => log.say(&format!("the secrets cannot be put in place: {error}")),
    }
}

/// Whether all of them are there now.
fn unseal(program: &Path, settings: &Settings) -> io::Result<bool> {
    let log = super::service::open_log(&settings.node_log)?;
    let mut child = Command::new(program)
        .arg0("orch-node")
        .arg("unseal")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()?;
    if !ends_within(&child, LIMIT)? {
        child.kill()?;
    }
    Ok(child.wait()?.success())
}

/// Whether a process ends within a limit.
pub(super) fn ends_within(child: &Child, limit: Duration) -> io::Result<bool> {
    let (end, deadline) = (pidfd_open(Pid::from_child(child), PidfdFlags::empty())?, Instant::now() + limit);
    let mut fds = [PollFd::new(&end, PollFlags::IN)];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut fds, Some(&timespec(left))) {
            Ok(ended) => return Ok(ended > 0),
            // A signal is heard after this.
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
