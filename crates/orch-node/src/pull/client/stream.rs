//! A connection with a deadline over everything that is done with it, which a signal can end.
//!
//! The deadline is of the whole and not of each step: a server that answers drop by drop does not get more time for it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::signals::Signals;

/// What ends a call before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heed {
    /// The word to stop.
    Stop,
    /// The word to look again, too.
    StopAndLookAgain,
}

/// Until when something is done, and what ends it before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until<'s> {
    pub(super) deadline: Instant,
    pub(super) heed: Heed,
    pub(super) signals: &'s Signals,
}

/// What the error of a call holds that was ended by a signal.
#[derive(Debug, thiserror::Error)]
#[error("it was told to stop")]
pub(super) struct Told;

impl Until<'_> {
    fn is_told(&self) -> bool {
        let looks = self.heed == Heed::StopAndLookAgain;
        self.signals.is_stop_asked() || (looks && self.signals.is_look_again_asked())
    }

    /// Sleeps; an error where that must end.
    pub(super) fn sleep(&self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            if Instant::now() >= end {
                return Ok(());
            }
            self.signals.wait(Some(end.min(self.deadline)));
        }
    }

    /// Waits until something can be done with `fd`.
    fn wait(&self, fd: &impl AsFd, wanted: PollFlags) -> io::Result<()> {
        loop {
            self.check()?;
            if self.signals.wait_for(fd.as_fd(), wanted, self.deadline)? {
                return Ok(());
            }
        }
    }

    /// An error where the time is over, or it was told to stop.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_told() {
            return Err(io::Error::other(Told));
        }
        if Instant::now() >= self.deadline { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// A connection, and until when it may be used.
#[derive(Debug)]
pub(super) struct Stream<'s> {
    tcp: TcpStream,
    pub(super) until: Until<'s>,
}

impl<'s> Stream<'s> {
    /// Connects to the first of these addresses that answers. Each has its share of the time.
    pub(super) fn connect(addresses: &[SocketAddr], until: Until<'s>) -> io::Result<Self> {
        let mut first = None;
        for (place, address) in addresses.iter().enumerate() {
            let left = until.deadline.saturating_duration_since(Instant::now());
            let shares = u32::try_from(addresses.len() - place).unwrap_or(u32::MAX);
            match open(address, Until { deadline: Instant::now() + left / shares, ..until }) {
                Ok(tcp) => return Ok(Self { tcp, until }),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
    }
}

fn open(address: &SocketAddr, until: Until<'_>) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            until.wait(&socket, PollFlags::OUT)?;
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    let tcp = TcpStream::from(socket);
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.until.check()?;
            match self.tcp.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.until.wait(&self.tcp, PollFlags::IN)?;
                }
                read => return read,
            }
        }
    }
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.until.check()?;
            match self.tcp.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.until.wait(&self.tcp, PollFlags::OUT)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
