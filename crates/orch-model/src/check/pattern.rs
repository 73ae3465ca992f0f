//! Whether the nodes have the shape that the manifest claims.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Roster;
use crate::decode::Located;
use crate::files::{Manifest, ManifestNode, Pattern};
use crate::text::{Finding, Reporter};

pub(super) fn check(manifest: &Manifest, roster: &Roster<'_>, cx: &mut Reporter<'_>) {
    match *manifest.pattern {
        Pattern::Flat => check_flat(roster, cx),
        Pattern::Tiered => check_tiered(manifest, roster, cx),
        Pattern::Mesh => check_mesh(manifest, roster, cx),
        Pattern::HubSpoke => check_hub_spoke(manifest, roster, cx),
        Pattern::Federated => check_federated(manifest, roster, cx),
    }
}

/// A node with a parent contradicts a flat manifest, whatever the other nodes are.
pub(super) fn check_flat(roster: &Roster<'_>, cx: &mut Reporter<'_>) {
    for node in roster.entries {
        if let Some((parent, span)) = node.parent.as_ref().and_then(Located::known) {
            let message = format!("the pattern is flat, and node `{}` lives on `{parent}`", *node.name);
            cx.report(Finding::new(span, message).hint("set `pattern: tiered`"));
        }
    }
}

fn check_tiered(manifest: &Manifest, roster: &Roster<'_>, cx: &mut Reporter<'_>) {
    if roster.entries.iter().all(|node| node.parent.is_none()) {
        contradict(manifest, "no node has a parent", "set `pattern: flat`", cx);
    }
}

fn check_mesh(manifest: &Manifest, roster: &Roster<'_>, cx: &mut Reporter<'_>) {
    if roster.members.len() < 2 {
        contradict(manifest, "a mesh has two nodes or more", "set `pattern: flat`", cx);
    }
    for node in roster.entries.iter().filter(|node| node.peers.is_empty()) {
        let message = format!("the pattern is mesh, and node `{}` has no peers", *node.name);
        complain(node, message, "name the other nodes under `peers`", cx);
    }
}

fn check_hub_spoke(manifest: &Manifest, roster: &Roster<'_>, cx: &mut Reporter<'_>) {
    let is_root = |node: &ManifestNode| node.parent.is_none() && node.depends_on.is_empty();
    let roots: Vec<usize> =
        (0..roster.members.len()).filter(|at| is_root(&roster.entries[roster.members[*at].entry])).collect();
    let [hub] = roots.as_slice() else {
        let names: Vec<String> =
            roots.iter().take(5).map(|at| format!("`{}`", roster.members[*at].name)).collect();
        let what = format!("{} nodes are roots: {}", roots.len(), names.join(", "));
        let hint = "a hub-spoke has one root; every other node is its child or depends on it";
        return contradict(manifest, &what, hint, cx);
    };
    let hub_name = &roster.members[*hub].name;
    let entry = roster.members[*hub].entry;
    for (index, node) in roster.entries.iter().enumerate().filter(|(index, _)| *index != entry) {
        if !roster.needs(index).contains(&entry) {
            let message = format!("node `{}` is no spoke of `{hub_name}`", *node.name);
            complain(node, message, &format!("add `parent: {hub_name}` or `depends_on: [{hub_name}]`"), cx);
        }
    }
}

fn check_federated(manifest: &Manifest, roster: &Roster<'_>, cx: &mut Reporter<'_>) {
    let roots = roster.entries.iter().filter(|node| node.parent.is_none());
    let count: usize = roots.clone().map(|node| node.count.get() as usize).sum();
    let hosts: BTreeSet<_> = roots.map(|node| node.host.as_deref()).collect();
    if count < 2 || hosts.len() < 2 {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (roots, places) = (plural(count), plural(hosts.len()));
        let what = format!("it has {count} root{roots} on {} host{places}", hosts.len());
        let hint = "a federation has two roots or more on two hosts or more: give roots a `host`";
        contradict(manifest, &what, hint, cx);
    }
}

/// The pattern as a whole does not fit.
fn contradict(manifest: &Manifest, what: &str, hint: &str, cx: &mut Reporter<'_>) {
    let pattern = *manifest.pattern;
    if let Some((_, span)) = manifest.pattern.known() {
        cx.report(Finding::new(span, format!("the pattern is {pattern}, and {what}")).hint(hint));
    }
}

/// One node does not fit.
fn complain(node: &ManifestNode, message: String, hint: &str, cx: &mut Reporter<'_>) {
    if let Some((_, span)) = node.name.known() {
        cx.report(Finding::new(span, message).hint(hint));
    }
}
