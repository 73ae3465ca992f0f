//! A manifest as a picture: boxes, and how they hang together.
//!
//! A [`Graph`] is plain data in file order. It says what the manifest says and decides nothing: `count` stays one
//! box, and a node whose place only a request could tell has none. Each language that it is drawn in has its file
//! here; all of them draw the same boxes with the same words.

mod build;
mod dot;
mod label;
mod layout;
mod mermaid;
mod svg;
mod text;

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Serialize;

use crate::files::{Mode, NodeKind, Pattern};
use crate::word::{HostName, NodeName, PresetName, SpecName};

/// The boxes and edges of a manifest, in file order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Graph {
    /// The manifest's name.
    pub title: String,
    /// What the manifest says it is for.
    pub description: Option<String>,
    /// The shape in which the nodes hang together.
    pub pattern: Pattern,
    /// One box for each entry of the manifest.
    pub nodes: Vec<GraphNode>,
    /// What holds between them: for each entry its parent, what it depends on, and its peers.
    pub edges: Vec<Edge>,
}

/// One entry of the manifest: a node, or `count` equal ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphNode {
    /// The entry's name.
    pub name: NodeName,
    /// How many nodes it stands for.
    pub count: u32,
    /// What kind of machine it is.
    pub kind: NodeKind,
    /// What it becomes; without a spec it is created and not configured.
    pub spec: Option<SpecName>,
    /// How large it is.
    pub preset: Option<PresetName>,
    /// What it is made from, in the manifest's words: an image, or for a container a template.
    pub image: Option<String>,
    /// Who brings its configuration to it.
    pub mode: Mode,
    /// Where it lives, as far as that is known.
    pub host: Option<HostName>,
}

/// What holds between two entries. It leads from what is ready first to what comes after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The parent, the dependency, or the peer that stands first in the file.
    pub from: NodeName,
    /// The child, the dependent, or the other peer.
    pub to: NodeName,
    /// What holds between them.
    pub kind: EdgeKind,
    /// Which of the nodes that `from` stands for are meant; none named means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<NodeName>,
}

/// What an edge means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// `to` lives on `from`.
    Parent,
    /// `to` waits for `from`.
    DependsOn,
    /// Both know each other.
    Peer,
}

impl EdgeKind {
    const ALL: [Self; 3] = [Self::Parent, Self::DependsOn, Self::Peer];

    /// The word for it in output, the same as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parent => "parent",
            Self::DependsOn => "depends_on",
            Self::Peer => "peer",
        }
    }
}

impl Graph {
    /// The graph in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        dot::Dot(self).to_string()
    }

    /// The graph as a Mermaid flowchart.
    pub fn to_mermaid(&self) -> String {
        mermaid::Mermaid(self).to_string()
    }

    /// The graph as a picture that needs nothing else: one file, for a light and a dark page.
    pub fn to_svg(&self) -> String {
        svg::Picture::new(self).to_string()
    }

    /// The edges with the places of their nodes; an edge to a node that is not there is left out.
    fn links(&self) -> impl Iterator<Item = (&Edge, layout::Link)> {
        let places: BTreeMap<&NodeName, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (&node.name, at)).collect();
        self.edges.iter().filter_map(move |edge| {
            let (from, to) = (*places.get(&edge.from)?, *places.get(&edge.to)?);
            Some((edge, layout::Link { from, to, kind: edge.kind }))
        })
    }
}
