//! The few words of rtnetlink that a bridge, its links, addresses and routes need.
//!
//! A socket stays in the network that it was opened in, whatever its process enters later: so one process can work on two
//! networks at once.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const REPLACE: u16 = 0x100;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const ERROR: u16 = 2;

const LINK_ADDRESS: u16 = 1;
const LINK_NAME: u16 = 3;
const LINK_MASTER: u16 = 10;
const LINK_INFO: u16 = 18;
const LINK_NAMESPACE: u16 = 28;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const ROUTE_TO: u16 = 1;
const ROUTE_VIA: u16 = 5;

/// The second byte of the hardware addresses of bridges, and of machines.
const BRIDGE: u8 = 0x6f;
const MACHINE: u8 = 0x6d;

const INET: u8 = 2;
const UP: u32 = 1;

/// The network that this thread was in when it was opened.
pub(crate) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// Opens the network that this thread is in.
    pub(crate) fn open() -> io::Result<Self> {
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket })
    }

    /// The number of an interface; `NotFound` where there is none of that name.
    pub(crate) fn index(&self, name: &str) -> io::Result<u32> {
        match rustix::net::netdevice::name_to_index(&self.socket, name) {
            Err(rustix::io::Errno::NODEV) => Err(io::ErrorKind::NotFound.into()),
            index => Ok(index?),
        }
    }

    /// Makes a bridge; one that is there already is left.
    ///
    /// It has a hardware address of its own, made from the address that it will have. Without one it takes the lowest of those
    /// attached to it, and so another one whenever a machine comes: who has learnt the old one talks to nobody for a while.
    pub(crate) fn add_bridge(&self, name: &str, address: Ipv4Addr) -> io::Result<()> {
        let mut message = Message::new(NEW_LINK, CREATE | EXCLUSIVE);
        message.link(0, 0);
        message.text(LINK_NAME, name);
        message.attribute(LINK_ADDRESS, &hardware_address(BRIDGE, address));
        message.nest(LINK_INFO, |message| message.text(INFO_KIND, "bridge"));
        match self.ask(message) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done,
        }
    }

    /// Makes a pair of interfaces: `name` here, `peer` in the other network.
    ///
    /// The peer's hardware address is made from the address that it will have: who has learnt the one of a machine's last
    /// life reaches the next one too.
    pub(crate) fn add_pair(
        &self,
        name: &str,
        peer: &str,
        address: Ipv4Addr,
        network: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut message = Message::new(NEW_LINK, CREATE | EXCLUSIVE);
        message.link(0, 0);
        message.text(LINK_NAME, name);
        message.nest(LINK_INFO, |message| {
            message.text(INFO_KIND, "veth");
            message.nest(INFO_DATA, |message| {
                message.nest(VETH_PEER, |message| {
                    message.link(0, 0);
                    message.text(LINK_NAME, peer);
                    message.attribute(LINK_ADDRESS, &hardware_address(MACHINE, address));
                    message.number(LINK_NAMESPACE, network.as_raw_fd().cast_unsigned());
                });
            });
        });
        self.ask(message)
    }

    /// Takes an interface away, and with it the other one of its pair; one that is gone is taken away already.
    pub(crate) fn delete(&self, name: &str) -> io::Result<()> {
        let index = match self.index(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            index => index?,
        };
        let mut message = Message::new(DELETE_LINK, 0);
        message.link(index, 0);
        match self.ask(message) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => Ok(()),
            done => done,
        }
    }

    /// Switches an interface on.
    pub(crate) fn switch_on(&self, name: &str) -> io::Result<()> {
        let mut message = Message::new(NEW_LINK, 0);
        message.link(self.index(name)?, UP);
        self.ask(message)
    }

    /// Attaches an interface to a bridge.
    pub(crate) fn attach(&self, name: &str, bridge: &str) -> io::Result<()> {
        let bridge = self.index(bridge)?;
        let mut message = Message::new(NEW_LINK, 0);
        message.link(self.index(name)?, 0);
        message.number(LINK_MASTER, bridge);
        self.ask(message)
    }

    /// Gives an interface an address.
    pub(crate) fn add_address(&self, name: &str, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let index = self.index(name)?;
        let mut message = Message::new(NEW_ADDRESS, CREATE | REPLACE);
        message.bytes(&[INET, prefix, 0, 0]);
        message.bytes(&index.to_ne_bytes());
        message.attribute(ADDRESS_LOCAL, &address.octets());
        message.attribute(ADDRESS, &address.octets());
        self.ask(message)
    }

    /// Adds a way to a network, or to everywhere where the prefix is 0; one that is there is replaced.
    pub(crate) fn add_route(&self, to: Ipv4Addr, prefix: u8, via: Ipv4Addr) -> io::Result<()> {
        const MAIN_TABLE: u8 = 254;
        const BY_BOOT: u8 = 3;
        const EVERYWHERE: u8 = 0;
        const UNICAST: u8 = 1;
        let mut message = Message::new(NEW_ROUTE, CREATE | REPLACE);
        message.bytes(&[INET, prefix, 0, 0, MAIN_TABLE, BY_BOOT, EVERYWHERE, UNICAST, 0, 0, 0, 0]);
        if prefix > 0 {
            message.attribute(ROUTE_TO, &to.octets());
        }
        message.attribute(ROUTE_VIA, &via.octets());
        self.ask(message)
    }

    /// Sends a request and waits for its answer.
    fn ask(&self, message: Message) -> io::Result<()> {
        rustix::net::send(&self.socket, &message.finish(), SendFlags::empty())?;
        let mut answer = [0_u8; 8192];
        let (_, length) = rustix::net::recv(self.socket.as_fd(), &mut answer, RecvFlags::empty())?;
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is too short");
        let answer = answer.get(..length).ok_or_else(malformed)?;
        let kind = answer.get(4..6).ok_or_else(malformed)?;
        let code = answer.get(16..20).ok_or_else(malformed)?;
        if u16::from_ne_bytes([kind[0], kind[1]]) != ERROR {
            return Err(malformed());
        }
        match i32::from_ne_bytes([code[0], code[1], code[2], code[3]]) {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(-code)),
        }
    }
}

/// A hardware address that nobody else has in its network: one of those that are given out locally.
fn hardware_address(of: u8, address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [0x02, of, a, b, c, d]
}

/// A request that is being put together.
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: u16) -> Self {
        let mut message = Self { bytes: vec![0; 4] };
        message.bytes(&kind.to_ne_bytes());
        message.bytes(&(REQUEST | ACKNOWLEDGE | flags).to_ne_bytes());
        message.bytes(&[0; 8]);
        message
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The head of what is said about an interface, with the flags that are to be set.
    fn link(&mut self, index: u32, flags: u32) {
        self.bytes(&[0; 4]);
        self.bytes(&index.to_ne_bytes());
        self.bytes(&flags.to_ne_bytes());
        self.bytes(&flags.to_ne_bytes());
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nest(kind, |message| message.bytes(value));
    }

    fn text(&mut self, kind: u16, value: &str) {
        self.nest(kind, |message| {
            message.bytes(value.as_bytes());
            message.bytes(&[0]);
        });
    }

    fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// An attribute whose value `fill` writes. Its length does not count what rounds it up to four bytes.
    fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes(&[0, 0]);
        self.bytes(&kind.to_ne_bytes());
        fill(self);
        let length = u16::try_from(self.bytes.len() - start).expect("our attributes are short");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("our messages are short");
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}
