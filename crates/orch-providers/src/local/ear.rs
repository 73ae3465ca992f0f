//! Where the nodes of a host find the server that they fetch from: on the host's own bridge, in a network that nothing else of
//! this computer is in. Whoever serves gets the socket from a process that goes there.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;

use orch_model::pull::SERVER_PORT;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::Local;
use super::boot::UPLINK;
use super::child::helper;
use super::enter::{EnterError, join_bridge};
use super::inside::Outside;
use super::net::Bridge;
use super::record::Folder;
use crate::finish::finish;

/// The word for listening on a host's bridge.
pub(crate) const LISTEN: &str = "listen";

impl Local {
    /// Where its nodes find their server.
    pub fn server_address(&self) -> String {
        format!("https://{}", address())
    }

    /// Which network its nodes are in now; nothing where there is none. A host whose last node went has another one later.
    pub async fn network(&self) -> io::Result<Option<u64>> {
        let maker = Arc::clone(&self.maker);
        let found = tokio::task::spawn_blocking(move || Ok(maker.gate()?.map(|(_, network)| network)));
        found.await.map_err(io::Error::other)?
    }

    /// Listens to its nodes.
    pub async fn listen(&self) -> io::Result<TcpListener> {
        let maker = Arc::clone(&self.maker);
        tokio::task::spawn_blocking(move || maker.listen()).await.map_err(io::Error::other)?
    }
}

impl super::make::Maker {
    /// A machine on the host itself that is in place, and the network that it is attached to.
    fn gate(&self) -> io::Result<Option<(Folder, u64)>> {
        let outside = Outside::look()?;
        for found in self.store.list()? {
            let is_on_host = found.record.as_ref().is_some_and(|record| record.inside.is_none());
            let Some(init) = found.folder.in_place().filter(|_| is_on_host) else { continue };
            // One that is on its way out holds nothing any more.
            if let Ok(network) = outside.network_at(&init, UPLINK) {
                return Ok(Some((found.folder, network.metadata()?.ino())));
            }
        }
        Ok(None)
    }

    fn listen(&self) -> io::Result<TcpListener> {
        let (gate, _) = self.gate()?.ok_or_else(|| io::Error::other("no machine of the host runs"))?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = helper(&self.program, LISTEN, gate.path());
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let ended = finish(&mut command, std::time::Duration::from_secs(10))?;
        if !ended.status.success() {
            return Err(io::Error::other(ended.said()));
        }
        // What is not held open any more is not waited for.
        drop(command);
        receive(&ours).map(TcpListener::from)
    }
}

/// Listens on the host's bridge, and hands the socket to whoever has the other end of standard input.
pub(crate) fn listen(folder: &Folder) -> Result<(), EnterError> {
    let init = folder.running().ok_or_else(|| EnterError::Off(folder.name()))?;
    join_bridge(folder, &init, None)?;
    let failed = |error: io::Error| EnterError::Listen(address(), error);
    let listener = TcpListener::bind(address()).map_err(failed)?;
    send(&listener).map_err(failed)
}

/// On the bridge of the host, which is the gateway of its machines: those inside of them are routed there.
fn address() -> SocketAddr {
    SocketAddr::from((Bridge::HOST.gateway(), SERVER_PORT))
}

/// Hands a socket to whoever has the other end of standard input.
pub(super) fn send(socket: &impl AsFd) -> io::Result<()> {
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&sockets));
    sendmsg(io::stdin(), &[IoSlice::new(b"l")], &mut message, SendFlags::empty())?;
    Ok(())
}

/// Takes a socket that is handed over.
pub(super) fn receive(from: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = message.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    sockets.ok_or_else(|| io::Error::other("no socket came"))
}
