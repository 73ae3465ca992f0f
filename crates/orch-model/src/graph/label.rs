//! The words in and around a box, the same in every drawing.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::text::cut;
use super::{Edge, EdgeKind, Graph, GraphNode};
use crate::files::NodeKind;
use crate::word::NodeName;

/// The longest text in one line of a box; the data itself is never cut.
const MAX_CHARS: usize = 40;

/// What stands in one box: a heading, and lines of a key and a value, with the keys of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) heading: String,
    pub(super) lines: Vec<(&'static str, String)>,
}

/// The labels of all boxes, in order.
pub(super) fn labels(graph: &Graph) -> Vec<Label> {
    let mut labels: Vec<Label> = graph.nodes.iter().map(label).collect();
    for (edge, link) in graph.links().filter(|(edge, _)| !edge.members.is_empty()) {
        labels[link.to].lines.push((edge.kind.as_str(), cut(&members(edge), MAX_CHARS)));
    }
    labels
}

/// An edge as a sentence.
pub(super) fn sentence(edge: &Edge) -> String {
    let Edge { from, to, .. } = edge;
    match edge.kind {
        EdgeKind::Parent => format!("{to} lives on {from}"),
        EdgeKind::DependsOn => format!("{to} depends on {from}"),
        EdgeKind::Peer if from == to => format!("the nodes of {from} are peers"),
        EdgeKind::Peer => format!("{from} and {to} are peers"),
    }
}

fn label(node: &GraphNode) -> Label {
    let image_key = if node.kind == NodeKind::Ct { "template" } else { "image" };
    // Nothing is brought to a node without a spec, so it has no mode to show.
    let mode = node.spec.as_ref().map(|_| node.mode.to_string());
    let lines = [
        ("spec", node.spec.as_ref().map(ToString::to_string)),
        ("preset", node.preset.as_ref().map(ToString::to_string)),
        (image_key, node.image.clone()),
        ("mode", mode),
        ("host", node.host.as_ref().map(ToString::to_string)),
    ];
    let line = |(key, value): (_, Option<String>)| value.map(|value| (key, cut(&value, MAX_CHARS)));
    Label { heading: heading(node), lines: lines.into_iter().filter_map(line).collect() }
}

/// `web`, or `worker-1 … worker-3`.
fn heading(node: &GraphNode) -> String {
    let GraphNode { name, count, .. } = node;
    if *count == 1 {
        return cut(name.as_str(), MAX_CHARS);
    }
    let full = format!("{name}-1 … {name}-{count}");
    if full.chars().count() <= MAX_CHARS { full } else { cut(&format!("{name}-1 … {count}"), MAX_CHARS) }
}

fn members(edge: &Edge) -> String {
    // More than a few do not fit the line anyway.
    let names: Vec<&str> = edge.members.iter().take(MAX_CHARS).map(NodeName::as_str).collect();
    names.join(", ")
}
