//! Machines of a manifest that it no longer describes.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use orch_model::{HostName, NodeName};

use super::{Decider, reference};
use crate::action::Action;
use crate::plan::{Leftover, NodePlan, Verdict};

impl Decider<'_> {
    /// Machines that bear this manifest's marks for a node that it does not describe.
    pub(super) fn leftovers(&self) -> Vec<Leftover> {
        let described: BTreeSet<(&HostName, &NodeName)> =
            self.fleet.nodes.iter().map(|node| (&node.identity.host, node.name())).collect();
        let places = self
            .machines
            .iter()
            .flat_map(|(host, on)| on.iter().map(move |(node, found)| (*host, *node, found)));
        places
            .filter(|(host, node, _)| !described.contains(&(*host, *node)))
            .flat_map(|(_, _, machines)| machines)
            .filter_map(|machine| {
                let identity = machine.marks.as_ref()?.identity();
                Some(Leftover { identity, machine: reference(machine)? })
            })
            .collect()
    }

    /// Takes a leftover down. It may live on any node that can host, so it goes before those: they are its needs.
    pub(super) fn destroy_leftover(&self, leftover: Leftover) -> NodePlan {
        let hosts = self.fleet.nodes.iter().enumerate().filter(|(_, node)| node.can_host);
        let hosts = hosts.filter(|(_, node)| node.identity.host == leftover.identity.host);
        NodePlan {
            needs: hosts.map(|(place, _)| place).collect(),
            identity: leftover.identity,
            verdict: Verdict::Destroy,
            why: Vec::from(["the manifest no longer describes it".to_owned()]),
            down: Vec::from([Action::Destroy { machine: leftover.machine }]),
            up: Vec::new(),
        }
    }
}
