//! What nodes say of their machines at this moment. They tell the cluster every ten seconds, so its list may be that old: a
//! machine that was just switched off still runs there, and one that was just made may have the name of the one before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::guest::{Extent, GuestId, GuestKind, Listed, Status, is_name};
use super::maker::Maker;
use super::mark::Bears;
use super::read::Fields;
use super::trouble::Trouble;
use crate::api::encode;

/// What a node says of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    name: Option<String>,
    status: Status,
    extent: Extent,
}

impl Maker {
    /// Puts what nodes say of their machines in the stead of what the list says of them, one question for each kind that a node
    /// has any of that are or could be ours. What the list does not know yet is looked at closer anyway, and a node that does
    /// not answer is believed what it told last.
    pub(super) async fn freshen(self: &Arc<Self>, listed: &mut [Listed]) {
        let is_of_interest = |machine: &&Listed| {
            let is_ours = Bears::of(&machine.tags, None) != Bears::Nothing;
            machine.status != Status::Unknown
                && !machine.is_template
                && (is_ours || self.is_in_range(machine))
        };
        let places = listed.iter().filter(is_of_interest).map(|machine| &machine.spot);
        let places: BTreeSet<(String, GuestKind)> =
            places.map(|spot| (spot.node.clone(), spot.id.kind)).collect();
        let mut asked = JoinSet::new();
        for (node, kind) in places {
            let this = Arc::clone(self);
            asked.spawn(async move { this.said_by(&node, kind).await.map(|said| (node, said)) });
        }
        while let Some(answer) = asked.join_next().await {
            let Ok(Ok((node, said))) = answer else { continue };
            for machine in listed.iter_mut().filter(|machine| machine.spot.node == node) {
                if let Some(Said { name, status, extent }) = said.get(&machine.spot.id) {
                    machine.name.clone_from(name);
                    (machine.status, machine.extent) = (*status, *extent);
                }
            }
        }
    }

    async fn said_by(&self, node: &str, kind: GuestKind) -> Result<BTreeMap<GuestId, Said>, Trouble> {
        let path = format!("/nodes/{}/{}", encode(node), kind.as_str());
        let answer = self.caller.get(&path).await?;
        let entries = Fields::each(&path, &answer)?;
        Ok(entries.into_iter().filter_map(|entry| one(kind, entry)).collect())
    }
}

fn one(kind: GuestKind, entry: Fields<'_>) -> Option<(GuestId, Said)> {
    let vmid = entry.number("vmid").and_then(|vmid| u32::try_from(vmid).ok())?;
    let extent = Extent {
        cores: entry.number("cpus").filter(|cores| *cores > 0),
        memory: entry.number("maxmem").filter(|bytes| *bytes > 0).map(|bytes| bytes >> 20),
        disk: entry.number("maxdisk").filter(|bytes| *bytes > 0),
    };
    let name = entry.text("name").filter(|name| is_name(name, kind, vmid));
    Some((GuestId { kind, vmid }, Said { name, status: Status::of(entry.text("status").as_deref()), extent }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_node_says_of_a_machine_is_read() {
        let answer = json!([
            { "vmid": 10091, "name": "web", "status": "stopped", "cpus": 2, "maxmem": 1_610_612_736_u64, "maxdisk": 12_884_901_888_u64 },
            { "vmid": "10092", "name": "VM 10092", "status": "running", "cpus": 0 },
            { "status": "running" },
        ]);
        let entries = Fields::each("GET /x", &answer).unwrap();
        let said: BTreeMap<_, _> =
            entries.into_iter().filter_map(|entry| one(GuestKind::Qemu, entry)).collect();
        assert_eq!(said.len(), 2);
        let extent = Extent { cores: Some(2), memory: Some(1536), disk: Some(12 << 30) };
        let of = |vmid| said[&GuestId { kind: GuestKind::Qemu, vmid }].clone();
        assert_eq!(of(10_091), Said { name: Some("web".into()), status: Status::Stopped, extent });
        assert_eq!(of(10_092), Said { name: None, status: Status::Running, extent: Extent::default() });
    }
}
