//! Which addresses nodes have. Pure: a bridge has a number, and a node has a place on it.
//!
//! Everything is in networks that no process of this machine is in, so nothing can collide with a real network.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// How many bits of an address are the network's: a bridge has room for about a thousand nodes.
pub(crate) const PREFIX: u8 = 22;
/// How many bridges fit into 10.0.0.0/8.
const BRIDGES: u16 = 1 << (PREFIX - 8);
/// How many places a bridge has, its own and the last one not counted.
const PLACES: u16 = (1 << (32 - PREFIX)) - 2;

/// The network of one bridge: the host's, or the one inside a node that hosts others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Bridge(u16);

/// A node's place on a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) bridge: Bridge,
    number: u16,
}

impl Bridge {
    /// The host's own.
    pub(crate) const HOST: Self = Self(0);

    /// The first number that nobody has.
    pub(crate) fn first_free(taken: impl Fn(Self) -> bool) -> Option<Self> {
        (Self::HOST.0 + 1..BRIDGES).map(Self).find(|bridge| !taken(*bridge))
    }

    /// The network's own address.
    pub(crate) fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits((10 << 24) | (u32::from(self.0) << (32 - PREFIX)))
    }

    /// The bridge's address, which is the gateway of the nodes on it.
    pub(crate) fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network().to_bits() + 1)
    }
}

impl Place {
    /// The first place on a bridge that nobody has.
    pub(crate) fn first_free(bridge: Bridge, taken: impl Fn(Self) -> bool) -> Option<Self> {
        (2..PLACES).map(|number| Self { bridge, number }).find(|place| !taken(*place))
    }

    /// The node's address.
    pub(crate) fn address(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.bridge.network().to_bits() + u32::from(self.number))
    }

    /// The name of the node's interface at the bridge's end.
    pub(crate) fn link(self) -> String {
        format!("n{}-{}", self.bridge.0, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridges_do_not_overlap_and_places_lie_in_their_bridge() {
        let mut bridges = Vec::new();
        while let Some(next) = Bridge::first_free(|bridge| bridges.contains(&bridge)) {
            bridges.push(next);
            if bridges.len() == 300 {
                break;
            }
        }
        let ends: Vec<(u32, u32)> = bridges
            .iter()
            .map(|bridge| (bridge.network().to_bits(), bridge.network().to_bits() + (1 << (32 - PREFIX))))
            .collect();
        assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert_eq!(Bridge::HOST.gateway().to_string(), "10.0.0.1");
        assert_eq!(bridges[0].gateway().to_string(), "10.0.4.1");
    }

    #[test]
    fn places_are_given_once_and_run_out() {
        let mut taken = Vec::new();
        while let Some(place) = Place::first_free(Bridge::HOST, |place| taken.contains(&place)) {
            taken.push(place);
        }
        assert_eq!(taken[0].address().to_string(), "10.0.0.2");
        assert_eq!(taken.last().unwrap().address().to_string(), "10.0.3.253");
        let mut addresses: Vec<_> = taken.iter().map(|place| place.address()).collect();
        addresses.dedup();
        assert_eq!(addresses.len(), taken.len());
        assert!(taken.iter().all(|place| place.link().len() < 16), "the kernel takes 15 characters");
    }
}
