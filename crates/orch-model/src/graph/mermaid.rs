//! The graph as a Mermaid flowchart, as GitHub and GitLab draw it inside Markdown.

use core::fmt::{self, Display, Formatter, Write};

use super::label::labels;
use super::text::{cut, printable};
use super::{EdgeKind, Graph};
use crate::word::NodeName;

/// How much of the description is told to screen readers.
const MAX_DESCRIPTION: usize = 400;

pub(super) struct Mermaid<'g>(pub(super) &'g Graph);

impl Display for Mermaid<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(graph) = self;
        writeln!(f, "---\ntitle: \"{}\"\n---\nflowchart TD", YamlEscaped(&graph.title))?;
        writeln!(f, "  accTitle: {}", Escaped(&graph.title))?;
        if let Some(description) = &graph.description {
            writeln!(f, "  accDescr: {}", Escaped(&cut(description, MAX_DESCRIPTION)))?;
        }
        for (node, label) in graph.nodes.iter().zip(labels(graph)) {
            write!(f, "  {}[\"<b>{}</b>", Id(&node.name), Escaped(&label.heading))?;
            if node.count > 1 {
                write!(f, " ×{}", node.count)?;
            }
            write!(f, "<br/>type {}", node.kind)?;
            for (key, value) in &label.lines {
                write!(f, "<br/>{key} {}", Escaped(value))?;
            }
            writeln!(f, "\"]")?;
        }
        for edge in &graph.edges {
            writeln!(f, "  {} {} {}", Id(&edge.from), arrow(edge.kind), Id(&edge.to))?;
        }
        Ok(())
    }
}

const fn arrow(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Parent => "-->",
        EdgeKind::DependsOn => "-.->",
        EdgeKind::Peer => "---",
    }
}

/// A name that is no word of Mermaid's own, such as `end` is. Names hold no `_`, so two stay two.
struct Id<'n>(&'n NodeName);

impl Display for Id<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("n_")?;
        self.0.as_str().chars().try_for_each(|c| f.write_char(if c == '-' { '_' } else { c }))
    }
}

/// Text in which nothing is left that Mermaid, Markdown or HTML would read: not even `%%{init}%%` or `\n`.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                c if is_plain(c) => f.write_char(c)?,
                '\n' | '\r' | '\t' => f.write_char(' ')?,
                c if c.is_ascii_graphic() => write!(f, "#{};", u32::from(c))?,
                c => f.write_char(printable(c))?,
            }
        }
        Ok(())
    }
}

/// Text inside the double quotes of YAML, for the heading.
struct YamlEscaped<'t>(&'t str);

impl Display for YamlEscaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                c if is_plain(c) => f.write_char(c)?,
                c if c.is_ascii() => write!(f, "\\x{:02x}", u32::from(c))?,
                c => f.write_char(printable(c))?,
            }
        }
        Ok(())
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ',' | ':' | '/' | '(' | ')' | '+' | '=')
}
