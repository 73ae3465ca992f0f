//! Catalog to graph.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Edge, EdgeKind, Graph, GraphNode};
use crate::catalog::Catalog;
use crate::check::Roster;
use crate::files::{Manifest, ManifestNode, NodeKind};
use crate::word::{HostName, ManifestName, NodeName};

impl Catalog<'_> {
    /// Draws a manifest that was read; `None` where it was not.
    ///
    /// `host` is the place of nodes that name none, as with a request. Without one, nothing is said of their place.
    pub fn graph(&self, manifest: &ManifestName, host: Option<&HostName>) -> Option<Graph> {
        let file = self.manifests.get(manifest)?;
        let mut cx = self.manifests.reporter(manifest)?;
        let roster = Roster::new(&file.nodes, &mut cx);
        let placed = place(&roster, host);
        let nodes = file.nodes.iter().zip(placed).map(|(entry, host)| node(file, entry, host));
        Some(Graph {
            title: manifest.to_string(),
            description: file.description.clone(),
            pattern: *file.pattern,
            nodes: nodes.collect(),
            edges: edges(&roster),
        })
    }
}

/// The host of each entry: its parent's, its own, or the request's.
fn place<'m>(roster: &Roster<'m>, host: Option<&'m HostName>) -> Vec<Option<&'m HostName>> {
    let mut placed = alloc::vec![host; roster.entries.len()];
    for index in roster.order().iter().copied() {
        let entry = &roster.entries[index];
        let parent = entry.parent.as_deref().and_then(|name| roster.entry_of(name));
        placed[index] = match parent {
            Some(parent) => placed[parent],
            None => entry.host.as_deref().or(host),
        };
    }
    placed
}

fn node(manifest: &Manifest, entry: &ManifestNode, host: Option<&HostName>) -> GraphNode {
    let image = match *entry.kind {
        NodeKind::Ct => &entry.template,
        NodeKind::Vm | NodeKind::Pve => &entry.image,
    };
    GraphNode {
        name: (*entry.name).clone(),
        count: entry.count.get(),
        kind: *entry.kind,
        spec: entry.spec.as_deref().cloned(),
        preset: entry.preset.as_deref().cloned(),
        image: image.as_deref().cloned(),
        mode: entry.execution.mode.unwrap_or(manifest.execution.default_mode),
        host: host.cloned(),
    }
}

fn edges(roster: &Roster<'_>) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut known_peers = BTreeSet::new();
    for (index, entry) in roster.entries.iter().enumerate() {
        let edge = |from: usize, kind, members| Edge {
            from: (*roster.entries[from].name).clone(),
            to: (*entry.name).clone(),
            kind,
            members,
        };
        let parent = meant(roster, entry.parent.iter().map(|name| &**name));
        edges.extend(parent.into_iter().map(|(from, members)| edge(from, EdgeKind::Parent, members)));
        let needs = meant(roster, entry.depends_on.iter().map(|name| &**name));
        edges.extend(needs.into_iter().map(|(from, members)| edge(from, EdgeKind::DependsOn, members)));
        for peer in entry.peers.iter().filter_map(|name| roster.entry_of(name)) {
            let (first, second) = (index.min(peer), index.max(peer));
            if known_peers.insert((first, second)) {
                edges.push(Edge {
                    from: (*roster.entries[first].name).clone(),
                    to: (*roster.entries[second].name).clone(),
                    kind: EdgeKind::Peer,
                    members: Vec::new(),
                });
            }
        }
    }
    edges
}

/// The entries that references lead to, each once and in the order of the references, with the members that are
/// singled out where not all are meant.
fn meant<'r>(
    roster: &Roster<'_>,
    references: impl Iterator<Item = &'r NodeName>,
) -> Vec<(usize, Vec<NodeName>)> {
    let mut found: Vec<(usize, Option<BTreeSet<usize>>)> = Vec::new();
    let mut places = BTreeMap::new();
    for range in references.filter_map(|name| roster.find(name)) {
        let entry = roster.members[range.start].entry;
        let place = *places.entry(entry).or_insert_with(|| {
            found.push((entry, Some(BTreeSet::new())));
            found.len() - 1
        });
        // A reference names one member or all of them; all are not written out, since they may be very many.
        match &mut found[place].1 {
            Some(singled) if range != roster.members_of(entry) => {
                singled.insert(range.start);
            }
            singled => *singled = None,
        }
    }
    let name = |at: usize| roster.members[at].name.clone();
    let names = |singled: Option<BTreeSet<usize>>| singled.into_iter().flatten().map(name).collect();
    found.into_iter().map(|(entry, singled)| (entry, names(singled))).collect()
}
