//! Which addresses the lab has: a block of loopback, `127.A.B.0/24`, that no other lab of this computer has, and further ones
//! where that is full. All of `127.0.0.0/8` is this computer's own, so nobody has to be asked for them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::listen::listen;
use crate::state;

/// Blocks are numbered by `A` and `B`; others of this computer are more likely to be below.
const FIRST: u16 = 64 << 8;
const LAST: u16 = (127 << 8) | 255;
/// The first machine of a block; the APIs are below.
const FIRST_MACHINE: u8 = 10;
const LAST_MACHINE: u8 = 253;
/// Whoever listens here has the block. The port is none that the kernel would give to others.
const LOCK: (u8, u16) = (254, 61_999);
/// How many blocks are tried before there seems to be none.
const TRIES: u16 = 200;

/// There is no address.
#[derive(Debug, Error)]
pub enum AddressError {
    /// The file that says which are taken is of no use.
    #[error("the addresses in `{path}` cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another lab has them.
    #[error("the addresses of `{0}` are taken by another lab")]
    Taken(Ipv4Addr),
    /// There are as many APIs as there is room for.
    #[error("host `{host}` has no address: a lab has room for {} hosts", FIRST_MACHINE - 1)]
    Full {
        /// The host.
        host: String,
    },
    /// All blocks are in use.
    #[error("no block of loopback addresses is free")]
    None,
}

/// The addresses of a lab.
#[derive(Debug)]
pub struct Addresses {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    written: Written,
    /// The blocks that are held, by whoever listens there for us.
    held: BTreeMap<u16, TcpListener>,
}

/// As it is written down.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    block: u16,
    /// Where the APIs of hosts are served. It is kept by their names, so that one more or less moves no other.
    #[serde(default)]
    apis: BTreeMap<String, Ipv4Addr>,
    machines: BTreeMap<String, Ipv4Addr>,
}

impl Addresses {
    /// Takes up the block that this file names and those of its machines, or a new one where there is no file. They are held
    /// until this is dropped.
    pub fn hold(path: &Path) -> Result<Arc<Self>, AddressError> {
        let failed = |source| AddressError::File { path: path.to_owned(), source };
        let (written, held) = match state::read::<Written>(path).map_err(failed)? {
            Some(written) => {
                let held = hold_again(&written)?;
                (written, held)
            }
            None => new_block()?,
        };
        state::write(path, &written).map_err(failed)?;
        Ok(Arc::new(Self { path: path.to_owned(), known: Mutex::new(Known { written, held }) }))
    }

    /// Where the API of a host is served, given to it now where it has no address.
    pub fn of_api(&self, host: impl fmt::Display) -> Result<Ipv4Addr, AddressError> {
        let (mut known, host) = (self.lock(), host.to_string());
        if let Some(address) = known.written.apis.get(&host) {
            return Ok(*address);
        }
        let is_free = |address: &Ipv4Addr| !known.written.apis.values().any(|taken| taken == address);
        let mut all = (1..FIRST_MACHINE).map(|number| address(known.written.block, number));
        let Some(free) = all.find(is_free) else { return Err(AddressError::Full { host }) };
        known.written.apis.insert(host, free);
        self.write(&known)?;
        Ok(free)
    }

    /// The address of a machine, given to it now where it has none.
    pub(crate) fn give(&self, machine: &str) -> Result<Ipv4Addr, AddressError> {
        let mut known = self.lock();
        if let Some(address) = known.written.machines.get(machine) {
            return Ok(*address);
        }
        let free = known.free()?;
        known.written.machines.insert(machine.to_owned(), free);
        self.write(&known)?;
        Ok(free)
    }

    /// Takes the address of a machine back.
    pub(crate) fn take_back(&self, machine: &str) -> Result<(), AddressError> {
        let mut known = self.lock();
        if known.written.machines.remove(machine).is_some() { self.write(&known) } else { Ok(()) }
    }

    fn write(&self, known: &Known) -> Result<(), AddressError> {
        let failed = |source| AddressError::File { path: self.path.clone(), source };
        state::write(&self.path, &known.written).map_err(failed)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panics while holding this")
    }
}

impl Known {
    /// The first address that no machine has, in this block or the next one that can be had.
    fn free(&mut self) -> Result<Ipv4Addr, AddressError> {
        for block in (self.written.block..=LAST).take(TRIES.into()) {
            let is_free = |address: &Ipv4Addr| !self.written.machines.values().any(|taken| taken == address);
            let free = (FIRST_MACHINE..=LAST_MACHINE).map(|number| address(block, number)).find(is_free);
            let Some(free) = free else { continue };
            if self.held.contains_key(&block) {
                return Ok(free);
            }
            if let Ok(lock) = hold(block) {
                self.held.insert(block, lock);
                return Ok(free);
            }
        }
        Err(AddressError::None)
    }
}

fn new_block() -> Result<(Written, BTreeMap<u16, TcpListener>), AddressError> {
    for _ in 0..TRIES {
        let [high, low, ..] = *Uuid::new_v4().as_bytes();
        let block = FIRST + u16::from_be_bytes([high, low]) % (LAST - FIRST);
        if let Ok(lock) = hold(block) {
            let (apis, machines) = (BTreeMap::new(), BTreeMap::new());
            return Ok((Written { block, apis, machines }, BTreeMap::from([(block, lock)])));
        }
    }
    Err(AddressError::None)
}

fn hold_again(written: &Written) -> Result<BTreeMap<u16, TcpListener>, AddressError> {
    let mut held = BTreeMap::new();
    for block in
        std::iter::once(written.block).chain(written.machines.values().map(|address| block_of(*address)))
    {
        if let Entry::Vacant(place) = held.entry(block) {
            place.insert(listen(lock_of(block)).map_err(|_| AddressError::Taken(address(block, 0)))?);
        }
    }
    Ok(held)
}

fn hold(block: u16) -> io::Result<TcpListener> {
    TcpListener::bind(lock_of(block))
}

fn lock_of(block: u16) -> SocketAddr {
    SocketAddr::from((address(block, LOCK.0), LOCK.1))
}

const fn address(block: u16, number: u8) -> Ipv4Addr {
    let [high, low] = block.to_be_bytes();
    Ipv4Addr::new(127, high, low, number)
}

const fn block_of(address: Ipv4Addr) -> u16 {
    let [_, high, low, _] = address.octets();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_labs_share_a_block_and_a_lab_that_comes_back_has_what_it_had() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let first = Addresses::hold(&one).expect("there is room");
        let second = Addresses::hold(&two).expect("there is room");
        let (api, machine) =
            (first.of_api("pve").expect("there is room"), first.give("a").expect("there is room"));
        assert_eq!(api.octets()[3], 1);
        assert_eq!(machine.octets()[3], FIRST_MACHINE);
        assert_ne!(block_of(api), block_of(second.of_api("pve").expect("there is room")));
        assert!(matches!(Addresses::hold(&one), Err(AddressError::Taken(_))), "it is held");
        drop(first);
        let again = Addresses::hold(&one).expect("nobody holds it");
        assert_eq!(again.of_api("pve").ok(), Some(api));
        assert_eq!(again.give("a").ok(), Some(machine));
        assert_ne!(again.give("b").ok(), Some(machine));
        again.take_back("a").expect("it can be written");
        assert_eq!(again.give("c").ok(), Some(machine), "what was given back is given again");
    }

    #[test]
    fn more_machines_than_a_block_has_room_for_go_into_the_next() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let addresses = Addresses::hold(&folder.path().join("a")).expect("there is room");
        let all: BTreeSet<Ipv4Addr> =
            (0..300).map(|number| addresses.give(&number.to_string()).expect("there is room")).collect();
        assert_eq!(all.len(), 300);
        let blocks: BTreeSet<u16> = all.iter().map(|address| block_of(*address)).collect();
        assert_eq!(blocks.len(), 2);
    }

    #[test]
    fn an_api_keeps_its_address_whoever_comes_before_it_and_one_too_many_is_named() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("a");
        let addresses = Addresses::hold(&path).expect("there is room");
        let last = addresses.of_api("z").expect("there is room");
        drop(addresses);
        let addresses = Addresses::hold(&path).expect("nobody holds it");
        let others: BTreeSet<Ipv4Addr> =
            (0..8).map(|number| addresses.of_api(number).expect("there is room")).collect();
        assert_eq!((others.len(), others.contains(&last)), (8, false));
        assert_eq!(addresses.of_api("z").ok(), Some(last));
        let full = addresses.of_api("one-more").expect_err("there is no room");
        assert_eq!(full.to_string(), "host `one-more` has no address: a lab has room for 9 hosts");
    }
}
