//! One node: its relations to others, and keys that do not go together.

use alloc::collections::BTreeMap;
use alloc::format;

use super::{Context, Roster};
use crate::decode::{Located, suggestion};
use crate::files::{Host, ManifestNode, NodeKind};
use crate::text::{Finding, Reporter};
use crate::word::{HostName, NodeName};

pub(super) fn check(
    node: &ManifestNode,
    roster: &Roster<'_>,
    context: &Context<'_, '_>,
    cx: &mut Reporter<'_>,
) {
    check_parent(node, roster, context, cx);
    for dependency in &node.depends_on {
        check_reference(node, dependency, roster, "depends on", cx);
    }
    for peer in &node.peers {
        check_reference(node, peer, roster, "has the peer", cx);
    }
    check_image(node, cx);
    check_host(node, context, cx);
    if let Some((vmid, span)) = node.vmid.as_ref().and_then(Located::known)
        && node.count.get() > 1
    {
        let message =
            format!("vmid {} cannot name the {} nodes of `{}`", vmid.get(), node.count.get(), *node.name);
        cx.report(
            Finding::new(span, message)
                .hint("leave it out, and each node's VMID is derived from its identity"),
        );
    }
}

/// Reports VMIDs that two entries ask for on the same host.
pub(super) fn check_vmids(nodes: &[ManifestNode], cx: &mut Reporter<'_>) {
    let mut taken: BTreeMap<(Option<&HostName>, Option<&NodeName>, u32), &ManifestNode> = BTreeMap::new();
    for node in nodes {
        let Some((vmid, span)) = node.vmid.as_ref().and_then(Located::known) else {
            continue;
        };
        let place = (node.host.as_deref(), node.parent.as_deref(), vmid.get());
        if let Some(other) = taken.insert(place, node) {
            let message = format!("vmid {} is taken by node `{}`", vmid.get(), *other.name);
            cx.report(Finding::new(span, message));
        }
    }
}

fn check_reference(
    node: &ManifestNode,
    reference: &Located<NodeName>,
    roster: &Roster<'_>,
    relation: &str,
    cx: &mut Reporter<'_>,
) {
    if let Some((name, span)) = reference.known()
        && roster.find(name).is_none()
    {
        let message =
            format!("node `{}` {relation} `{name}`, which this manifest does not define", *node.name);
        let hint = suggestion(name.as_str(), roster.names(), cx);
        cx.report(Finding::new(span, message).hint_option(hint));
    }
}

fn check_parent(node: &ManifestNode, roster: &Roster<'_>, context: &Context<'_, '_>, cx: &mut Reporter<'_>) {
    let Some(parent) = &node.parent else {
        return;
    };
    check_reference(node, parent, roster, "has parent", cx);
    let Some((name, span)) = parent.known() else {
        return;
    };
    let Some(members) = roster.find(name) else {
        return;
    };
    if members.len() > 1 {
        let message = format!("parent `{name}` stands for {} nodes, and a node lives on one", members.len());
        let hint = format!("name one of them, such as `{}`", roster.members[members.start].name);
        return cx.report(Finding::new(span, message).hint(hint));
    }
    let entry = &roster.entries[roster.members[members.start].entry];
    if !can_host(entry, context) {
        let message = format!("node `{}` has parent `{name}`, which cannot host nodes", *node.name);
        let hint =
            format!("make `{name}` a node of `type: pve`, or give it a spec with `platform.hypervisor`");
        cx.report(Finding::new(span, message).hint(hint));
    }
    if let Some((host, span)) = node.host.as_ref().and_then(Located::known)
        && host_of_root(entry, roster) != Some(host)
    {
        let message =
            format!("node `{}` lives on `{name}` and cannot be placed on host `{host}` too", *node.name);
        cx.report(Finding::new(span, message).hint("leave `host` out: a child is where its parent is"));
    }
}

/// The host that the outermost node around this one names. On a cycle, which is told elsewhere, there is none.
fn host_of_root<'m>(node: &'m ManifestNode, roster: &Roster<'m>) -> Option<&'m HostName> {
    let parent = |node: &&'m ManifestNode| {
        let index = roster.entry_of(node.parent.as_deref()?)?;
        Some(&roster.entries[index])
    };
    let around = core::iter::successors(Some(node), parent).take(roster.entries.len());
    around.filter(|node| node.parent.is_none()).find_map(|root| root.host.as_deref())
}

/// Whether nodes may live on this one; in doubt (its spec is broken or missing) yes, so as not to complain twice.
fn can_host(node: &ManifestNode, context: &Context<'_, '_>) -> bool {
    let Some((kind, _)) = node.kind.known() else {
        return true;
    };
    let by_spec = |name| context.specs.get(name).is_none_or(|spec| spec.platform.hypervisor.is_some());
    *kind == NodeKind::Pve || node.spec.as_deref().is_some_and(by_spec)
}

fn check_image(node: &ManifestNode, cx: &mut Reporter<'_>) {
    let Some((kind, _)) = node.kind.known() else {
        return;
    };
    let (wrong, key, right) = match kind {
        NodeKind::Ct => (&node.image, "image", "a `template`"),
        NodeKind::Vm | NodeKind::Pve => (&node.template, "template", "an `image`"),
    };
    if let Some((_, span)) = wrong.as_ref().and_then(Located::known) {
        let message = format!("node `{}` is {} and takes no `{key}`", *node.name, kind.with_article());
        cx.report(Finding::new(span, message).hint(format!("{} is made from {right}", kind.with_article())));
    }
}

fn check_host(node: &ManifestNode, context: &Context<'_, '_>, cx: &mut Reporter<'_>) {
    if let Some((name, span)) = node.host.as_ref().and_then(Located::known)
        && matches!(context.hosts.get(name), Some(Host::K3s(_)))
    {
        cx.report(Finding::new(span, format!("host `{name}` runs workloads (k3s) and takes no nodes")));
    }
}
