//! The graph in the language of Graphviz.

use core::fmt::{self, Display, Formatter, Write};

use super::label::{Label, labels};
use super::text::{printable, wrap};
use super::{EdgeKind, Graph};

/// How many characters of the description stand in one line.
const LINE_CHARS: i64 = 72;

pub(super) struct Dot<'g>(pub(super) &'g Graph);

impl Display for Dot<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(graph) = self;
        writeln!(f, "digraph \"{}\" {{", Escaped(&graph.title))?;
        write!(
            f,
            "  graph [rankdir=TB, labelloc=t, fontname=\"sans-serif\", label=\"{}",
            Escaped(&graph.title)
        )?;
        let description = graph.description.as_deref().unwrap_or_default();
        for line in wrap(description, LINE_CHARS, 4, |text| text.chars().map(|_| 1).sum()) {
            write!(f, "\\n{}", Escaped(&line))?;
        }
        writeln!(f, "\"];")?;
        writeln!(
            f,
            "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f8fafc\", color=\"#94a3b8\", fontname=\"sans-serif\"];"
        )?;
        writeln!(f, "  edge [color=\"#475569\"];")?;
        for (node, label) in graph.nodes.iter().zip(labels(graph)) {
            write!(f, "  \"{}\" [label=\"", node.name)?;
            write_label(f, &label, node.kind.as_str(), node.count)?;
            writeln!(f, "\"];")?;
        }
        for edge in &graph.edges {
            writeln!(f, "  \"{}\" -> \"{}\" [{}];", edge.from, edge.to, style(edge.kind))?;
        }
        writeln!(f, "}}")
    }
}

fn write_label(f: &mut Formatter<'_>, label: &Label, kind: &str, count: u32) -> fmt::Result {
    write!(f, "{}", Escaped(&label.heading))?;
    if count > 1 {
        write!(f, " (×{count})")?;
    }
    write!(f, "\\ntype {kind}")?;
    for (key, value) in &label.lines {
        write!(f, "\\n{key} {}", Escaped(value))?;
    }
    Ok(())
}

const fn style(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Parent => "style=solid",
        EdgeKind::DependsOn => "style=dashed, color=\"#b45309\"",
        // Peers are equals: none is drawn above the other because of it.
        EdgeKind::Peer => "dir=none, constraint=false, color=\"#0e7490\"",
    }
}

/// Text inside quotes. Graphviz reads `\N` and the like in labels, and HTML entities too.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '&' => f.write_str("&amp;")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(printable(c))?,
            }
        }
        Ok(())
    }
}
