//! Machines of a manifest that it no longer describes.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use orch_model::{Fleet, HostName, NodeName};

use super::{Decider, Ours, reference};
use crate::action::Action;
use crate::plan::{Leftover, NodePlan, Verdict};

/// Machines that bear this manifest's marks for a node that it does not describe.
pub(super) fn leftovers(fleet: &Fleet, machines: &Ours<'_>) -> Vec<Leftover> {
    let described: BTreeSet<(&HostName, &NodeName)> =
        fleet.nodes.iter().map(|node| (&node.identity.host, node.name())).collect();
    let places =
        machines.iter().flat_map(|(host, on)| on.iter().map(move |(node, found)| (*host, *node, found)));
    places
        .filter(|(host, node, _)| !described.contains(&(*host, *node)))
        .flat_map(|(_, _, machines)| machines)
        .filter_map(|machine| {
            let identity = machine.marks.as_ref()?.identity();
            Some(Leftover { identity, machine: reference(machine)? })
        })
        .collect()
}

impl Decider<'_> {
    /// Takes a leftover down. It may live on any node that can host, so it goes before those: they are its needs.
    pub(super) fn destroy_leftover(&self, leftover: Leftover) -> NodePlan {
        let host = &leftover.identity.host;
        let hosts = self.fleet.nodes.iter().filter(|node| node.can_host && node.identity.host == *host);
        let places = hosts.filter_map(|node| self.decided.get(node.name())).map(|(place, _)| *place);
        NodePlan {
            needs: places.collect(),
            identity: leftover.identity,
            verdict: Verdict::Destroy,
            why: Vec::from(["the manifest no longer describes it".to_owned()]),
            down: Vec::from([Action::Destroy { machine: leftover.machine }]),
            up: Vec::new(),
            nixos: None,
        }
    }
}
