//! Ranges of IPv4 addresses, as networks and subnets have them.

use std::net::Ipv4Addr;

/// A range such as `10.0.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    first: u32,
    bits: u32,
}

impl Range {
    /// Reads a range; the bits behind its prefix have to be zero.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let first = u32::from(address.parse::<Ipv4Addr>().ok()?);
        let bits = bits.parse().ok().filter(|bits| *bits <= 32)?;
        let range = Self { first, bits };
        (first == range.first & range.mask()).then_some(range)
    }

    const fn mask(self) -> u32 {
        if self.bits == 0 { 0 } else { u32::MAX << (32 - self.bits) }
    }

    const fn last(self) -> u32 {
        self.first | !self.mask()
    }

    /// Whether it lies in the ranges that private networks may have, and is large enough for one.
    pub(super) fn is_private(self) -> bool {
        let blocks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];
        self.bits <= 30
            && blocks.iter().filter_map(|block| Self::parse(block)).any(|block| block.contains(self))
    }

    pub(super) const fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last() <= self.last()
    }

    pub(super) const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last() && other.first <= self.last()
    }

    pub(super) fn holds(self, address: Ipv4Addr) -> bool {
        (self.first..=self.last()).contains(&u32::from(address))
    }

    /// The address of the gateway: the first one behind the network's own.
    pub(super) fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::from(self.first.saturating_add(1))
    }

    /// The addresses that servers can have.
    pub(super) fn hosts(self) -> impl Iterator<Item = Ipv4Addr> {
        (self.first.saturating_add(2)..self.last()).map(Ipv4Addr::from)
    }

    /// The ranges of 256 addresses in it, or itself where it is smaller.
    pub(super) fn subnets(self) -> impl Iterator<Item = Self> {
        let bits = self.bits.max(24);
        let step = Self { first: 0, bits }.last() as usize + 1;
        (self.first..=self.last()).step_by(step).map(move |first| Self { first, bits })
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_know_what_is_in_them() {
        let range = |text| Range::parse(text).unwrap();
        let network = range("10.0.0.0/16");
        assert!(
            network.is_private()
                && network.contains(range("10.0.255.0/24"))
                && !network.contains(range("10.0.0.0/8"))
        );
        assert!(network.overlaps(range("10.0.0.0/8")) && !network.overlaps(range("10.1.0.0/16")));
        assert_eq!(network.subnets().nth(1).unwrap().to_string(), "10.0.1.0/24");
        assert_eq!(range("10.0.1.0/29").hosts().count(), 5);
        assert_eq!(range("10.0.1.0/24").hosts().next(), Some(Ipv4Addr::new(10, 0, 1, 2)));
        assert!(!range("8.8.8.0/24").is_private() && range("0.0.0.0/0").contains(network));
        for wrong in ["", "10.0.0.0", "10.0.0.1/16", "10.0.0.0/33", "x/8"] {
            assert_eq!(Range::parse(wrong), None, "{wrong}");
        }
    }
}
