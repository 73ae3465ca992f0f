//! Names and VMIDs for machines that are to be made, so that nothing of a stranger's is ever taken.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use orch_model::{Fleet, HostName, Identity, Node, Provider, VmidRange};

use crate::observed::Observed;

/// What is taken on each host: by machines that are there, and by machines that this plan makes.
pub(crate) struct Names<'f> {
    fleet: &'f Fleet,
    hosts: BTreeMap<HostName, Taken>,
}

#[derive(Default)]
struct Taken {
    names: BTreeSet<String>,
    /// Who has each VMID.
    vmids: BTreeMap<u32, String>,
    /// VMIDs that nodes insist on; none of them is derived for another node.
    insisted: BTreeSet<u32>,
    /// Whether none is left to derive.
    exhausted: bool,
}

impl<'f> Names<'f> {
    pub(crate) fn taken(fleet: &'f Fleet, observed: &Observed) -> Self {
        let mut hosts: BTreeMap<HostName, Taken> = BTreeMap::new();
        for (host, view) in &observed.hosts {
            let taken = hosts.entry(host.clone()).or_default();
            // Inside another machine, names and numbers are that machine's own.
            for machine in view.machines().iter().filter(|machine| machine.inside.is_none()) {
                taken.names.insert(machine.name.clone());
                taken.vmids.extend(machine.vmid.map(|vmid| (vmid, machine.name.clone())));
            }
        }
        for node in fleet.nodes.iter().filter(|node| node.parent.is_none()) {
            if let Some(vmid) = node.vmid {
                hosts.entry(node.identity.host.clone()).or_default().insisted.insert(vmid);
            }
        }
        Self { fleet, hosts }
    }

    /// A name that no machine has: `<manifest>-<node>`, or where that is taken one with digits of the identity.
    pub(crate) fn name(&mut self, identity: &Identity) -> Result<String, String> {
        let names = &mut self.hosts.entry(identity.host.clone()).or_default().names;
        let plain = identity.plain_name();
        if names.insert(plain.clone()) {
            return Ok(plain);
        }
        let distinct = identity.distinct_name();
        if names.insert(distinct.clone()) {
            return Ok(distinct);
        }
        Err(format!("its names `{plain}` and `{distinct}` belong to other machines"))
    }

    /// The VMID that the manifest insists on, or one derived from the identity, probing past what is taken. A machine
    /// that is made anew keeps its `own`, where that will do. Hosts without VMIDs have none; inside another node the
    /// numbers are that node's own, and none is derived here.
    pub(crate) fn vmid(&mut self, node: &Node, own: Option<u32>) -> Result<Option<u32>, String> {
        let host = &node.identity.host;
        let Some(Provider::Proxmox(proxmox)) = self.fleet.hosts.get(host).map(|host| &host.provider) else {
            return Ok(None);
        };
        if node.parent.is_some() {
            return Ok(node.vmid);
        }
        let taken = self.hosts.entry(host.clone()).or_default();
        let vmid = match (node.vmid, own) {
            (Some(vmid), _) => vmid,
            (None, Some(own)) if taken.may_derive(own, proxmox.vmid_range) => own,
            (None, _) => taken.derive(&node.identity, proxmox.vmid_range)?,
        };
        if own == Some(vmid) {
            return Ok(own);
        }
        if let Some(owner) = taken.vmids.get(&vmid) {
            return Err(format!("VMID {vmid} belongs to another machine (`{owner}`)"));
        }
        taken.vmids.insert(vmid, node.name().as_str().to_owned());
        Ok(Some(vmid))
    }
}

impl Taken {
    fn may_derive(&self, vmid: u32, range: VmidRange) -> bool {
        (range.first()..=range.last()).contains(&vmid) && !self.insisted.contains(&vmid)
    }

    fn derive(&mut self, identity: &Identity, range: VmidRange) -> Result<u32, String> {
        let (first, last) = (range.first(), range.last());
        let count = u64::from(last - first) + 1;
        let start = identity.digest().as_number() % count;
        // Nothing is ever given back, so a range that is full once is not searched again for every further node.
        let steps = if self.exhausted { 0 } else { count };
        let free = (0..steps)
            .filter_map(|step| u32::try_from((start + step) % count).ok())
            .map(|offset| first + offset)
            .find(|vmid| !self.vmids.contains_key(vmid) && !self.insisted.contains(vmid));
        self.exhausted = free.is_none();
        free.ok_or_else(|| format!("every VMID from {first} to {last} is taken"))
    }
}
