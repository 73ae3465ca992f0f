//! A connection to something that only a node can reach, through the connection to that node.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use orch_run::withhold;
use tokio::io::{AsyncRead, AsyncWrite, Join, ReadBuf, join};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::connection::Connection;

/// Bytes to and from something that a node can reach. Let go of, it ends.
pub struct Tunnel {
    bytes: Join<ChildStdout, ChildStdin>,
    /// Ends with this.
    _ssh: Child,
}

impl Connection {
    /// Connects to an address as the node sees it.
    pub fn tunnel(&self, address: &str, port: u16) -> io::Result<Tunnel> {
        let (ssh, config, alias) = self.way_in();
        let mut command = Command::new(ssh);
        withhold(command.as_std_mut());
        let mut child = command
            .arg("-F")
            .arg(config)
            .args(["-W", &format!("[{address}]:{port}"), "--", alias])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What goes wrong is seen by who waits for an answer.
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let ends = child.stdout.take().zip(child.stdin.take());
        let (stdout, stdin) = ends.ok_or_else(|| io::Error::other("ssh has no input or output"))?;
        Ok(Tunnel { bytes: join(stdout, stdin), _ssh: child })
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_read(cx, into)
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(cx)
    }
}
