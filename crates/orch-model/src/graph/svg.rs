//! The graph as a picture, drawn here and needing nothing else.
//!
//! The reader's font decides how wide text really is, so widths are estimated for the widest common one. There is no
//! script and no reference to anything outside, so the picture may be shown wherever an image may be.

mod xml;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use super::label::{Label, labels, sentence};
use super::layout::{Corner, Layout, Line, Link, Shape, Size, layout};
use super::text::{width, wrap};
use super::{Edge, EdgeKind, Graph, GraphNode};
use xml::Escaped;

const STYLE: &str = include_str!("svg/style.css");

/// The free space around everything.
const MARGIN: i64 = 28;
/// The free space inside a box, left and right.
const PADDING: i64 = 14;
/// From the upper edge of a box to its first line.
const HEADING_HEIGHT: i64 = 34;
const LINE_HEIGHT: i64 = 18;
/// How far the second card of a box that stands for several looks out.
const STACK: i64 = 6;
const MIN_BOX_WIDTH: i64 = 132;
/// The description is broken into lines no shorter than this, however small the graph is.
const MIN_TEXT_WIDTH: i64 = 480;

/// A graph with the places of everything in it.
pub(super) struct Picture<'g> {
    graph: &'g Graph,
    edges: Vec<&'g Edge>,
    cards: Vec<Card>,
    layout: Layout,
    description: Vec<String>,
    size: Size,
    /// How far the boxes are moved to the right and down.
    origin: Corner,
}

/// The box of one entry, from the inside.
struct Card {
    label: Label,
    /// What it is, and how many it stands for.
    pills: Vec<(&'static str, String)>,
    /// Where values begin.
    values_at: i64,
    /// The front card, without the one behind it.
    front: Size,
    is_stack: bool,
}

impl<'g> Picture<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        let cards: Vec<Card> =
            graph.nodes.iter().zip(labels(graph)).map(|(node, label)| Card::new(node, label)).collect();
        let sizes: Vec<Size> = cards.iter().map(Card::size).collect();
        let (edges, links): (Vec<&Edge>, Vec<Link>) = graph.links().unzip();
        let layout = layout(&sizes, &links);
        let title_width =
            pixels(&graph.title, 20, true) + 20 + pixels(graph.pattern.as_str(), 12, false) + 20;
        let legend_width: i64 = legend(&edges).map(legend_width).sum();
        let widest = layout.size.width.clamp(MIN_TEXT_WIDTH, 900);
        let text = graph.description.as_deref().unwrap_or_default();
        let description = wrap(text, widest, 4, |line| pixels(line, 13, false));
        let description_width = description.iter().map(|line| pixels(line, 13, false)).max().unwrap_or(0);
        let inner = layout.size.width.max(title_width).max(legend_width).max(description_width);
        let described = LINE_HEIGHT * i64::try_from(description.len()).unwrap_or_default();
        let legend_height = if edges.is_empty() { 0 } else { 30 };
        let origin = Corner {
            x: MARGIN + (inner - layout.size.width) / 2,
            y: MARGIN + 24 + described + legend_height + 26,
        };
        let size = Size { width: inner + 2 * MARGIN, height: origin.y + layout.size.height + MARGIN };
        Self { graph, edges, cards, layout, description, size, origin }
    }

    fn write_head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let title = Escaped(&self.graph.title);
        writeln!(f, "<title>{title}</title>")?;
        if let Some(description) = &self.graph.description {
            writeln!(f, "<desc>{}</desc>", Escaped(description))?;
        }
        writeln!(f, "<style>\n{STYLE}</style>")?;
        writeln!(f, "<defs>")?;
        for kind in legend(&self.edges).filter(|kind| *kind != EdgeKind::Peer) {
            let name = kind.as_str();
            writeln!(
                f,
                "<marker id=\"orch-{name}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" \
                 markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
                 <path class=\"head {name}\" d=\"M0 .8 10 5 0 9.2z\"/></marker>"
            )?;
        }
        writeln!(f, "</defs>")?;
        writeln!(f, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>")
    }

    /// The title, the pattern, the description, and what the lines mean.
    fn write_heading(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut y = MARGIN + 18;
        writeln!(
            f,
            "<text class=\"heading\" x=\"{MARGIN}\" y=\"{y}\">{}</text>",
            Escaped(&self.graph.title)
        )?;
        let pill_x = MARGIN + pixels(&self.graph.title, 20, true) + 6;
        write_pill(f, Corner { x: pill_x, y: y - 14 }, "pattern", self.graph.pattern.as_str())?;
        y += 6;
        for line in &self.description {
            y += LINE_HEIGHT;
            writeln!(f, "<text class=\"description\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", Escaped(line))?;
        }
        y += 26;
        let mut x = MARGIN;
        for kind in legend(&self.edges) {
            let shape = Shape::Side { from: Corner { x, y: y - 4 }, to: Corner { x: x + 34, y: y - 4 } };
            write_path(f, "key", &Line { kind, link: None, shape }, true)?;
            writeln!(f, "/>")?;
            writeln!(f, "<text class=\"key\" x=\"{}\" y=\"{y}\">{}</text>", x + 42, legend_text(kind))?;
            x += legend_width(kind);
        }
        Ok(())
    }

    fn write_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for line in &self.layout.lines {
            match line.link {
                None => {
                    write_path(f, "way", line, false)?;
                    writeln!(f, "/>")?;
                }
                Some(link) => {
                    write_path(f, "edge", line, true)?;
                    writeln!(f, "><title>{}</title></path>", Escaped(&sentence(self.edges[link])))?;
                }
            }
        }
        Ok(())
    }
}

impl Display for Picture<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Size { width, height } = self.size;
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"orch-graph\" role=\"graphics-document document\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
        )?;
        self.write_head(f)?;
        self.write_heading(f)?;
        writeln!(f, "<g transform=\"translate({} {})\">", self.origin.x, self.origin.y)?;
        self.write_lines(f)?;
        for ((node, card), corner) in self.graph.nodes.iter().zip(&self.cards).zip(&self.layout.corners) {
            card.write(f, node, *corner)?;
        }
        writeln!(f, "</g>\n</svg>")
    }
}

impl Card {
    fn new(node: &GraphNode, label: Label) -> Self {
        let mut pills = Vec::new();
        if node.count > 1 {
            pills.push(("count", format!("×{}", node.count)));
        }
        pills.push((node.kind.as_str(), node.kind.to_string()));
        let pills_width: i64 = pills.iter().map(|(_, text)| pill_width(text) + 6).sum();
        let keys = label.lines.iter().map(|(key, _)| pixels(key, 12, false)).max().unwrap_or_default();
        let values_at = PADDING + keys + 10;
        let values = label.lines.iter().map(|(_, value)| pixels(value, 12, false)).max();
        let heading = PADDING + pixels(&label.heading, 14, true) + 6 + pills_width + PADDING - 6;
        let lines = values.map_or(0, |values| values_at + values + PADDING);
        let height = match i64::try_from(label.lines.len()).unwrap_or_default() {
            0 => HEADING_HEIGHT + 6,
            lines => HEADING_HEIGHT + lines * LINE_HEIGHT + 12,
        };
        let width = heading.max(lines).max(MIN_BOX_WIDTH);
        Self { label, pills, values_at, front: Size { width, height }, is_stack: node.count > 1 }
    }

    fn size(&self) -> Size {
        let behind = if self.is_stack { STACK } else { 0 };
        Size { width: self.front.width + behind, height: self.front.height + behind }
    }

    fn write(&self, f: &mut Formatter<'_>, node: &GraphNode, corner: Corner) -> fmt::Result {
        let Size { width, height } = self.front;
        writeln!(f, "<g class=\"node {}\" transform=\"translate({} {})\">", node.kind, corner.x, corner.y)?;
        writeln!(f, "<title>{}</title>", Escaped(node.name.as_str()))?;
        if self.is_stack {
            writeln!(
                f,
                "<rect class=\"card\" x=\"{STACK}\" y=\"{STACK}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>"
            )?;
        }
        writeln!(f, "<rect class=\"card\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>")?;
        writeln!(f, "<text class=\"name\" x=\"{PADDING}\" y=\"23\">{}</text>", Escaped(&self.label.heading))?;
        let mut right = width - PADDING + 4;
        for (class, text) in self.pills.iter().rev() {
            right -= pill_width(text);
            write_pill(f, Corner { x: right, y: 9 }, class, text)?;
            right -= 6;
        }
        let mut y = HEADING_HEIGHT + 12;
        for (key, value) in &self.label.lines {
            writeln!(f, "<text class=\"key\" x=\"{PADDING}\" y=\"{y}\">{key}</text>")?;
            writeln!(
                f,
                "<text class=\"value\" x=\"{}\" y=\"{y}\">{}</text>",
                self.values_at,
                Escaped(value)
            )?;
            y += LINE_HEIGHT;
        }
        writeln!(f, "</g>")
    }
}

fn write_pill(f: &mut Formatter<'_>, corner: Corner, class: &str, text: &str) -> fmt::Result {
    let Corner { x, y } = corner;
    let width = pill_width(text);
    writeln!(
        f,
        "<rect class=\"pill {class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"18\" rx=\"9\"/>"
    )?;
    let (x, y) = (x + width / 2, y + 13);
    writeln!(f, "<text class=\"pill {class}\" x=\"{x}\" y=\"{y}\">{}</text>", Escaped(text))
}

/// Writes a path up to its last attribute; whoever calls closes it.
fn write_path(f: &mut Formatter<'_>, class: &str, line: &Line, ends: bool) -> fmt::Result {
    let kind = line.kind.as_str();
    write!(f, "<path class=\"{class} {kind}\" d=\"")?;
    match &line.shape {
        Shape::Fall { from, to, end, .. } if from.x == to.x => write!(f, "M{} {}V{end}", from.x, from.y)?,
        Shape::Fall { from, bend, to, end } => {
            let middle = i64::midpoint(*bend, to.y);
            write!(
                f,
                "M{} {}V{bend}C{} {middle} {} {middle} {} {}",
                from.x, from.y, from.x, to.x, to.x, to.y
            )?;
            if *end != to.y {
                write!(f, "V{end}")?;
            }
        }
        Shape::Arc { from, to, bend, depth } => {
            let low = bend + depth;
            write!(
                f,
                "M{} {}V{bend}C{} {low} {} {low} {} {bend}V{}",
                from.x, from.y, from.x, to.x, to.x, to.y
            )?;
        }
        Shape::Side { from, to } => write!(f, "M{} {}H{}", from.x, from.y, to.x)?,
        Shape::Loop { at, reach } => {
            let reach = at.x + reach * 4 / 3;
            write!(f, "M{} {}C{reach} {} {reach} {} {} {}", at.x, at.y, at.y, at.y + 24, at.x, at.y + 24)?;
        }
    }
    f.write_str("\"")?;
    if ends && line.kind != EdgeKind::Peer {
        write!(f, " marker-end=\"url(#orch-{kind})\"")?;
    }
    Ok(())
}

/// The kinds of edges that occur.
fn legend(edges: &[&Edge]) -> impl Iterator<Item = EdgeKind> {
    EdgeKind::ALL.into_iter().filter(|kind| edges.iter().any(|edge| edge.kind == *kind))
}

const fn legend_text(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Parent => "parent to child",
        EdgeKind::DependsOn => "dependency to dependent",
        EdgeKind::Peer => "peers",
    }
}

fn legend_width(kind: EdgeKind) -> i64 {
    42 + pixels(legend_text(kind), 12, false) + 18
}

fn pill_width(text: &str) -> i64 {
    pixels(text, 11, true) + 14
}

/// How wide a text gets at most.
fn pixels(text: &str, size: i64, is_bold: bool) -> i64 {
    let width = width(text) * size / 1000;
    if is_bold { width * 11 / 10 } else { width }
}
