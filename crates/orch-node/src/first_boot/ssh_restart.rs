//! The SSH server, started anew. To be told to read its keys again is not enough: until it has, it shows the old ones to
//! whoever comes, and whoever comes first remembers what he saw.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::error::ApplyError;
use crate::node::Node;
use crate::ssh_server;
use crate::systemd::Systemd;
use crate::tool::timespec;

const LIMIT: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(5);

/// Starts the server anew where it runs, and returns when it answers. On a tree of files there is none.
pub(super) fn restart(node: &Node) -> Result<(), ApplyError> {
    if !node.is_real() {
        return Ok(());
    }
    if let Some(systemd) = Systemd::of(node) {
        return restart_unit(&systemd);
    }
    let Some(pid) = ssh_server::running() else { return Ok(()) };
    let sshd = Path::new("sshd");
    let ends = |pid: Pid| -> io::Result<bool> {
        let end = pidfd_open(pid, PidfdFlags::empty())?;
        kill_process(pid, Signal::TERM)?;
        Ok(poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&timespec(LIMIT)))? > 0)
    };
    if !ends(pid).map_err(ApplyError::file("end", sshd))? {
        return Err(ApplyError::Impossible(format!("the SSH server does not end within {LIMIT:?}")));
    }
    // Our own init starts it again.
    answers_within(LIMIT).map_err(ApplyError::file("reach", sshd))
}

fn restart_unit(systemd: &Systemd) -> Result<(), ApplyError> {
    for unit in ["ssh.service", "sshd.service"] {
        let state = systemd.state(unit)?;
        if state.is_known() && state.runs() {
            return systemd.change(&["restart"], unit);
        }
    }
    Ok(())
}

fn answers_within(limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    loop {
        match greeting() {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => thread::sleep(TICK),
        }
    }
}

fn greeting() -> io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], 22)), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut words = [0_u8; 4];
    stream.read_exact(&mut words)?;
    if &words == b"SSH-" { Ok(()) } else { Err(io::Error::other("what answers is no SSH server")) }
}
