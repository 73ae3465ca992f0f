//! Machines that stay. Whatever they live on stays too: taking it down would take them with it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;

use orch_model::{HostName, NodeName};

use super::{Decider, Decision, is_ours};
use crate::observed::Machine;
use crate::plan::Verb;

/// A machine that stays, and with it everything that it lives inside of.
#[derive(Clone, Copy)]
pub(super) enum Inhabitant<'f> {
    /// The command is not about it.
    NotSelected(&'f NodeName),
    /// Several machines bear its mark, so that none is touched.
    Doubled(&'f NodeName),
    /// It is not a node of this manifest.
    Foreign(&'f str),
}

impl Inhabitant<'_> {
    pub(super) fn refusal(self, node: &NodeName) -> Decision {
        Decision::refused(match self {
            Self::NotSelected(child) => {
                format!("`{child}` lives on it and is not selected: use `--only {node}+`")
            }
            Self::Foreign(machine) => {
                format!("machine `{machine}` lives on it, and is not a node of this manifest")
            }
            Self::Doubled(child) => {
                format!("several machines bear the mark of `{child}`, which lives on it: destroy that first")
            }
        })
    }
}

impl<'f> Decider<'f> {
    /// Nodes on which, at any depth, a machine lives that this plan does not take down, with one such.
    pub(super) fn inhabited(&self, picked: &[bool]) -> BTreeMap<&'f NodeName, Inhabitant<'f>> {
        let mut inhabited = self.inhabited_by_others();
        // Children come after their parents in a fleet, so backwards whoever lives deepest is seen first.
        for (node, picked) in self.fleet.nodes.iter().zip(picked).rev() {
            let Some(parent) = &node.parent else {
                continue;
            };
            let stays = match self.machines_of(node) {
                [_, ..] if !picked => Some(Inhabitant::NotSelected(node.name())),
                [_, _, ..] if self.goal.verb == Verb::Create => Some(Inhabitant::Doubled(node.name())),
                _ => inhabited.get(node.name()).copied(),
            };
            if let Some(stays) = stays {
                inhabited.insert(parent, stays);
            }
        }
        inhabited
    }

    /// Nodes with a machine on them that is no node's: a stranger's, or a leftover that this plan leaves alone.
    fn inhabited_by_others(&self) -> BTreeMap<&'f NodeName, Inhabitant<'f>> {
        let views = self.observed.hosts.iter();
        let machines =
            views.flat_map(|(host, view)| view.machines().iter().map(move |machine| (host, machine)));
        let nested = machines.filter_map(|(host, machine)| Some((host, machine, machine.inside.as_deref()?)));
        let mut nested = nested.peekable();
        // Most hosts have none, and then a large fleet need not be looked through.
        if nested.peek().is_none() {
            return BTreeMap::new();
        }
        let nodes = || self.fleet.nodes.iter().map(|node| (&node.identity.host, node));
        let described: BTreeSet<(&HostName, &NodeName)> =
            nodes().map(|(host, node)| (host, node.name())).collect();
        let owners: BTreeMap<(&HostName, &str), &'f NodeName> = nodes()
            .flat_map(|(host, node)| {
                self.machines_of(node).iter().map(move |found| ((host, &*found.id), node.name()))
            })
            .collect();
        let foreign = nested.filter(|(host, machine, _)| !self.is_of_this_plan(host, machine, &described));
        foreign
            .filter_map(|(host, machine, inside)| {
                Some((*owners.get(&(host, inside))?, Inhabitant::Foreign(&machine.name)))
            })
            .collect()
    }

    /// Whether a machine is a node of the manifest, or a leftover that this plan takes down.
    fn is_of_this_plan(
        &self,
        host: &HostName,
        machine: &Machine,
        described: &BTreeSet<(&HostName, &NodeName)>,
    ) -> bool {
        machine.marks.as_ref().is_some_and(|marks| {
            let goes = self.goal.verb == Verb::Destroy && self.goal.only.names(&marks.node);
            is_ours(self.fleet, host, marks) && (goes || described.contains(&(host, &marks.node)))
        })
    }
}
