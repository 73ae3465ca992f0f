//! The network of nodes: a bridge for each host, in a network of its own, and one inside each node that hosts others.

mod address;
mod netlink;

pub(crate) use address::{Bridge, PREFIX, Place};
pub(crate) use netlink::Netlink;
