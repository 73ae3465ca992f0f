//! What makes no sense only once the hosts are known: two nodes with one address, a size that a cloud does not sell.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

use super::{MAX_EDGES, Resolver};
use crate::check::Roster;
use crate::config::Network;
use crate::files::{ManifestNode, Pattern};
use crate::fleet::{Host, Node, Provider};
use crate::text::{Finding, Span};
use crate::word::{HostName, NodeName, PresetName};

impl Resolver<'_, '_> {
    /// A fixed address belongs to one node.
    pub(super) fn refuse_shared_addresses(&mut self, roster: &Roster<'_>, nodes: &[Node]) {
        let mut taken: BTreeMap<(&HostName, Option<&NodeName>, IpAddr), &Node> = BTreeMap::new();
        let mut told = BTreeSet::new();
        for node in nodes {
            let Some(Network::Static { ip, .. }) = node.config.as_ref().map(|config| &config.role.network)
            else {
                continue;
            };
            let place = (&node.identity.host, node.parent.as_ref(), ip.address());
            if let Some(other) = taken.insert(place, node) {
                let index = roster.entry_of(node.name());
                let span = index.and_then(|index| roster.entries[index].spec.as_ref()?.known());
                let span = span.map(|(_, span)| span);
                // One report is enough for an entry, however many nodes it stands for.
                if !told.insert(index) {
                    continue;
                }
                let (other, name, ip) = (other.name(), node.name(), ip.address());
                let message = format!("nodes `{other}` and `{name}` both get the address {ip}");
                self.report(span, message, "give each its own spec, or leave `network` out and use DHCP");
            }
        }
    }

    /// A VMID belongs to one node of a host. Where both nodes name the host, parsing has told; here the host of the
    /// request counts too.
    pub(super) fn refuse_shared_vmids(&mut self, roster: &Roster<'_>, nodes: &[Node]) {
        let mut taken: BTreeMap<(&HostName, Option<&NodeName>, u32), &Node> = BTreeMap::new();
        for node in nodes {
            let Some(vmid) = node.vmid else {
                continue;
            };
            let place = (&node.identity.host, node.parent.as_ref(), vmid);
            if let Some(other) = taken.insert(place, node) {
                let entry = roster.entry_of(node.name()).map(|index| &roster.entries[index]);
                let span = entry.and_then(|entry| entry.vmid.as_ref()?.known()).map(|(_, span)| span);
                let (other, host) = (other.name(), &node.identity.host);
                let message =
                    format!("vmid {vmid} is taken by node `{other}`, which is on host `{host}` too");
                self.report(span, message, "give each its own, or leave it out");
            }
        }
    }

    /// A federation whose roots the request puts on one host is none.
    pub(super) fn refuse_lone_federation(&mut self, nodes: &[Node]) {
        let roots: BTreeSet<&HostName> =
            nodes.iter().filter(|node| node.parent.is_none()).map(|node| &node.identity.host).collect();
        if *self.manifest.pattern != Pattern::Federated || roots.len() != 1 {
            return;
        }
        let span = self.manifest.pattern.known().map(|(_, span)| span);
        let message = String::from("the pattern is federated, and all roots are on one host");
        self.report(span, message, "name another host with -H, or give a root another `host`");
    }

    /// A cloud sells sizes, and the preset says which.
    pub(super) fn refuse_unsold_size(&mut self, entry: &ManifestNode, host: &Host) {
        let Provider::Hetzner(hetzner) = &host.provider else {
            return;
        };
        let preset = entry.preset.as_deref().map_or("", PresetName::as_str);
        if hetzner.server_types.contains_key(preset) {
            return;
        }
        let (name, host) = (&*entry.name, &host.name);
        let (span, message) = match entry.preset.as_ref() {
            Some(preset) => (
                preset.known().map(|(_, span)| span),
                format!("host `{host}` has no server type for the preset `{}` of node `{name}`", **preset),
            ),
            None => (
                entry.name.known().map(|(_, span)| span),
                format!("node `{name}` names no preset, and host `{host}` chooses server types by it"),
            ),
        };
        self.report(span, message, "add the preset to `server_types` of the host, or choose another");
    }

    pub(super) fn refuse_edges(&mut self, entry: &ManifestNode) {
        let span = entry.name.known().map(|(_, span)| span);
        let message = format!("the dependencies and peers of this manifest come to more than {MAX_EDGES}");
        self.report(span, message, "let many nodes depend on one rather than on each of many");
    }

    pub(super) fn report(&mut self, span: Option<Span>, message: String, hint: &str) {
        if let Some(span) = span {
            self.cx.report(Finding::new(span, message).hint(hint));
        }
    }
}
