//! Sockets in the networks of machines, for those who work on machines from outside: whoever has one needs to enter no
//! namespace any more.
//!
//! Root's threads can go into a network alone. Others need a process of their own for that, which hands the socket over.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use orch_run::{Ended, Target, TransportError};
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space};
use uuid::Uuid;

use super::Local;
use super::boot::{PROGRAM, join};
use super::child::helper;
use super::direct::Direct;
use super::ear::{receive, send};
use super::enter::{EnterError, join_bridge};
use super::inside::Outside;
use super::machine::is_root;
use super::make::Maker;
use super::record::Folder;
use super::way::unreachable;
use crate::finish::finish;
use crate::remote::{Remote, RunAs};
use crate::ssh::chain;

/// The word for connecting to a port of a machine and handing the connection over.
pub(crate) const DIAL: &str = "dial";
/// The word for listening inside of a machine and handing the socket over.
pub(crate) const LISTEN_INSIDE: &str = "listen-inside";

/// How long a machine may take to take a connection.
const CONNECT: Duration = Duration::from_secs(10);

impl Local {
    /// Whether the machine that bears this mark runs, is in place, and was made to its end.
    pub async fn runs(&self, uuid: Uuid) -> io::Result<bool> {
        let found = self.found(uuid).await?;
        Ok(found.is_some_and(|(folder, made, _)| made && folder.in_place().is_some()))
    }

    /// The address of a machine on the bridge that it is attached to; nothing where there is no such machine.
    pub async fn address(&self, uuid: Uuid) -> io::Result<Option<Ipv4Addr>> {
        Ok(self.found(uuid).await?.map(|(_, _, address)| address))
    }

    /// Connects to a port of a machine, over the bridge that it is attached to.
    pub async fn connect(&self, uuid: Uuid, port: u16) -> io::Result<TcpStream> {
        self.socket(uuid, DIAL, port).await.map(TcpStream::from)
    }

    /// Listens at a port of `127.0.0.1` inside of a machine.
    pub async fn listen_inside(&self, uuid: Uuid, port: u16) -> io::Result<TcpListener> {
        self.socket(uuid, LISTEN_INSIDE, port).await.map(TcpListener::from)
    }

    /// Runs the program that configures a machine inside of it as root, with these words.
    pub async fn run_inside(
        &self,
        target: &Target,
        words: &[&str],
        input: &[u8],
        limit: Duration,
    ) -> Result<Ended, TransportError> {
        let failed = |why: &str| unreachable(target, why);
        let found = self.found(target.uuid).await.map_err(|error| failed(&error.to_string()))?;
        let (folder, ..) = found.ok_or_else(|| failed("it does not exist"))?;
        let argv: Vec<String> =
            std::iter::once(PROGRAM).chain(words.iter().copied()).map(String::from).collect();
        let direct = Direct::new(folder, self.maker.program.clone(), target.clone());
        direct.run(&argv, RunAs::Root, input, limit).await
    }

    async fn found(&self, uuid: Uuid) -> io::Result<Option<(Folder, bool, Ipv4Addr)>> {
        let maker = Arc::clone(&self.maker);
        let found = tokio::task::spawn_blocking(move || maker.store.bearing(uuid));
        let found = found.await.map_err(io::Error::other)??;
        Ok(found.map(|(folder, record)| (folder, record.made, record.place.address())))
    }

    async fn socket(&self, uuid: Uuid, word: &'static str, port: u16) -> io::Result<OwnedFd> {
        let maker = Arc::clone(&self.maker);
        tokio::task::spawn_blocking(move || maker.socket(uuid, word, port)).await.map_err(io::Error::other)?
    }
}

impl Maker {
    fn socket(&self, uuid: Uuid, word: &'static str, port: u16) -> io::Result<OwnedFd> {
        let found = self.store.bearing(uuid)?;
        let (folder, _) = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        if !is_root() {
            return self.handed_over(&folder, word, port);
        }
        let made = thread::spawn(move || make(word, &folder, port)).join();
        let made = made.map_err(|_| io::Error::other("the thread that makes it has failed"))?;
        made.map_err(|error| io::Error::other(chain(&error)))
    }

    fn handed_over(&self, folder: &Folder, word: &str, port: u16) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = helper(&self.program, word, folder.path());
        command.arg(port.to_string()).stdin(Stdio::from(OwnedFd::from(theirs)));
        let ended = finish(&mut command, CONNECT * 2)?;
        if !ended.status.success() {
            return Err(io::Error::other(ended.said()));
        }
        // What is not held open any more is not waited for.
        drop(command);
        receive(&ours)
    }
}

/// Makes a socket, and hands it to whoever has the other end of standard input.
pub(crate) fn hand_over(word: &str, folder: &Folder, port: u16) -> Result<(), EnterError> {
    let socket = make(word, folder, port)?;
    send(&socket).map_err(EnterError::Network)
}

/// Makes a socket in a network of the machine's. This thread is in that network from then on.
fn make(word: &str, folder: &Folder, port: u16) -> Result<OwnedFd, EnterError> {
    if word == DIAL { dial(folder, port).map(OwnedFd::from) } else { listen(folder, port).map(OwnedFd::from) }
}

fn dial(folder: &Folder, port: u16) -> Result<TcpStream, EnterError> {
    let init = folder.running().ok_or_else(|| EnterError::Off(folder.name()))?;
    let record = folder.record().map_err(EnterError::Record)?;
    join_bridge(folder, &init, record.inside.as_deref())?;
    let address = SocketAddr::from((record.place.address(), port));
    TcpStream::connect_timeout(&address, CONNECT).map_err(|error| EnterError::Connect(address, error))
}

fn listen(folder: &Folder, port: u16) -> Result<TcpListener, EnterError> {
    let init = folder.running().ok_or_else(|| EnterError::Off(folder.name()))?;
    let outside = Outside::look();
    if !is_root() {
        join(&init, ThreadNameSpaceType::USER)?;
    }
    let network = outside.and_then(|outside| outside.network_of(&init)).map_err(EnterError::Network)?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| EnterError::Network(error.into()))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).map_err(|error| EnterError::Listen(address, error))
}
