//! The lines: out of a box at its lower edge, down to the end of its row, and in a curve to the next row.
//!
//! Curves stay in the space between rows and passing lines in the gaps that were left for them, so no line goes
//! through a box.

use alloc::vec::Vec;

use super::rows::Rows;
use super::{BOX_GAP, Corner, EdgeKind, Layout, Link, Size, int};

/// The least space between two rows.
const ROW_GAP: i64 = 52;

/// How far apart lines of different kinds meet a box.
const PORT_GAP: i64 = 26;

/// How far below the upper edge of a box the line to the peer beside it is.
const SIDE_DEPTH: i64 = 20;

/// How far a loop reaches beyond its box.
const LOOP_REACH: i64 = 26;

/// One stroke of the pen.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) kind: EdgeKind,
    /// The link that this stroke completes; without one it is a way that several share.
    pub(crate) link: Option<usize>,
    pub(crate) shape: Shape,
}

/// The shape of a stroke.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Straight down to `bend`, in a curve to the next row, and where it only passes through that, down to its `end`.
    Fall { from: Corner, bend: i64, to: Corner, end: i64 },
    /// From box to box in a curve below their row, which ends at `bend`.
    Arc { from: Corner, to: Corner, bend: i64, depth: i64 },
    /// From a box to the one beside it.
    Side { from: Corner, to: Corner },
    /// From a box to itself, at its right edge.
    Loop { at: Corner, reach: i64 },
}

/// Draws all lines, and moves the rows so far apart that there is room for them.
pub(super) fn route(rows: &Rows, sizes: &[Size], middles: &[i64], links: &[Link]) -> Layout {
    let ranks = ranks(rows);
    let flat: Vec<Flat> = links.iter().enumerate().filter_map(|at| flat(at, rows, &ranks)).collect();
    let bands = bands(rows, sizes, middles, &flat);
    let corners: Vec<Corner> = (0..rows.boxes)
        .map(|at| Corner { x: middles[at] - sizes[at].width / 2, y: bands[rows.row_of[at]].top })
        .collect();
    let pen = Pen { rows, sizes, middles, bands: &bands, ports: Ports::new(rows, middles, &flat) };
    let falls = rows.pieces.iter().map(|piece| Line {
        kind: piece.kind,
        link: piece.link,
        shape: Shape::Fall {
            from: pen.exit(piece.from, piece.kind),
            bend: bands[rows.row_of[piece.from]].bottom,
            to: pen.entry(piece.to, piece.kind),
            end: pen.end(piece.to),
        },
    });
    let strokes: Vec<Line> = flat.iter().map(|flat| pen.flat_line(flat)).chain(falls).collect();
    let size = Size {
        width: width(&corners, sizes, middles, &flat),
        height: bands.last().map_or(0, |band| band.bottom + band.arcs),
    };
    Layout { corners, lines: strokes, size }
}

/// A link that stays in its row.
struct Flat {
    link: usize,
    kind: EdgeKind,
    left: usize,
    right: usize,
    /// How many boxes further right it ends.
    span: usize,
}

impl Flat {
    fn is_arc(&self) -> bool {
        self.span > 1
    }

    fn depth(&self) -> i64 {
        44 + 24 * int(self.span.saturating_sub(2).min(8))
    }
}

fn flat((index, link): (usize, &Link), rows: &Rows, ranks: &[usize]) -> Option<Flat> {
    let is_flat = rows.row_of[link.from] == rows.row_of[link.to];
    let (left, right) =
        if ranks[link.from] <= ranks[link.to] { (link.from, link.to) } else { (link.to, link.from) };
    let span = ranks[right] - ranks[left].min(ranks[right]);
    is_flat.then_some(Flat { link: index, kind: link.kind, left, right, span })
}

/// The place of each box among the boxes of its row.
fn ranks(rows: &Rows) -> Vec<usize> {
    let mut ranks = alloc::vec![0; rows.boxes];
    for row in &rows.lists {
        for (rank, point) in row.iter().filter(|point| rows.is_box(**point)).enumerate() {
            ranks[*point] = rank;
        }
    }
    ranks
}

/// From where to where a row reaches, and how much room the arcs below it take.
struct Band {
    top: i64,
    bottom: i64,
    arcs: i64,
}

fn bands(rows: &Rows, sizes: &[Size], middles: &[i64], flat: &[Flat]) -> Vec<Band> {
    let mut arcs = alloc::vec![0_i64; rows.lists.len()];
    for flat in flat.iter().filter(|flat| flat.is_arc()) {
        let room = &mut arcs[rows.row_of[flat.left]];
        // The deepest point of the curve is at three quarters of its handles.
        *room = (*room).max(flat.depth() * 3 / 4);
    }
    // Where a line goes far to the side, more room keeps it from running along the boxes.
    let mut reach = alloc::vec![0_i64; rows.lists.len()];
    for piece in &rows.pieces {
        let reach = &mut reach[rows.row_of[piece.from]];
        *reach = (*reach).max((middles[piece.from] - middles[piece.to]).abs());
    }
    let mut top = 0;
    let band = |(((index, row), arcs), reach): (((usize, &Vec<usize>), i64), i64)| {
        let heights = row.iter().filter_map(|point| sizes.get(*point)).map(|size| size.height);
        let bottom = top + heights.max().unwrap_or_default();
        let band = Band { top, bottom, arcs };
        let gap = if index < rows.first_loose { ROW_GAP } else { BOX_GAP };
        top = bottom + gap + arcs + (reach / 12).min(64);
        band
    };
    rows.lists.iter().enumerate().zip(arcs).zip(reach).map(band).collect()
}

/// Where lines of each kind leave and enter each box, seen from its middle.
struct Ports {
    exits: Vec<[i64; 3]>,
    entries: Vec<[i64; 3]>,
}

impl Ports {
    fn new(rows: &Rows, middles: &[i64], flat: &[Flat]) -> Self {
        let arcs = flat.iter().filter(|flat| flat.is_arc());
        let arc_ends =
            arcs.flat_map(|arc| [(arc.left, arc.kind, arc.right), (arc.right, arc.kind, arc.left)]);
        let exits = rows.pieces.iter().map(|piece| (piece.from, piece.kind, piece.to));
        let entries = rows.pieces.iter().map(|piece| (piece.to, piece.kind, piece.from));
        Self { exits: spread(rows, middles, exits.chain(arc_ends)), entries: spread(rows, middles, entries) }
    }
}

/// Sets the kinds of lines that meet a box side by side, in the order of where they come from or go.
fn spread(
    rows: &Rows,
    middles: &[i64],
    ends: impl Iterator<Item = (usize, EdgeKind, usize)>,
) -> Vec<[i64; 3]> {
    let mut sums = alloc::vec![[(0_i64, 0_i64); 3]; rows.boxes];
    for (point, kind, other) in ends.filter(|(point, ..)| rows.is_box(*point)) {
        let (sum, count) = &mut sums[point][kind as usize];
        *sum += middles[other];
        *count += 1;
    }
    let offsets = |sums: [(i64, i64); 3]| {
        let present = EdgeKind::ALL.into_iter().filter_map(|kind| {
            let (sum, count) = sums[kind as usize];
            Some((sum.checked_div(count)?, kind))
        });
        let mut present: Vec<(i64, EdgeKind)> = present.collect();
        present.sort_unstable();
        let mut offsets = [0; 3];
        for (at, (_, kind)) in present.iter().enumerate() {
            offsets[*kind as usize] = (2 * int(at) - int(present.len()) + 1) * PORT_GAP / 2;
        }
        offsets
    };
    sums.into_iter().map(offsets).collect()
}

struct Pen<'r> {
    rows: &'r Rows,
    sizes: &'r [Size],
    middles: &'r [i64],
    bands: &'r [Band],
    ports: Ports,
}

impl Pen<'_> {
    /// Where a line of a kind leaves a point: below a box, or at the end of its way through a row.
    fn exit(&self, point: usize, kind: EdgeKind) -> Corner {
        let band = &self.bands[self.rows.row_of[point]];
        let offset = self.ports.exits.get(point).map_or(0, |offsets| offsets[kind as usize]);
        let y = self.sizes.get(point).map_or(band.bottom, |size| band.top + size.height);
        Corner { x: self.middles[point] + offset, y }
    }

    /// How far down a line goes that leads to a point.
    fn end(&self, point: usize) -> i64 {
        let band = &self.bands[self.rows.row_of[point]];
        if self.rows.is_box(point) { band.top } else { band.bottom }
    }

    fn entry(&self, point: usize, kind: EdgeKind) -> Corner {
        let offset = self.ports.entries.get(point).map_or(0, |offsets| offsets[kind as usize]);
        Corner { x: self.middles[point] + offset, y: self.bands[self.rows.row_of[point]].top }
    }

    fn flat_line(&self, flat: &Flat) -> Line {
        let band = &self.bands[self.rows.row_of[flat.left]];
        let half = |point: usize| self.sizes[point].width / 2;
        let y = band.top + SIDE_DEPTH;
        let right_edge = Corner { x: self.middles[flat.left] + half(flat.left), y };
        let shape = match flat.span {
            0 => Shape::Loop { at: right_edge, reach: LOOP_REACH },
            1 => {
                let left_edge = Corner { x: self.middles[flat.right] - half(flat.right), y };
                Shape::Side { from: right_edge, to: left_edge }
            }
            _ => Shape::Arc {
                from: self.exit(flat.left, flat.kind),
                to: self.exit(flat.right, flat.kind),
                bend: band.bottom,
                depth: flat.depth(),
            },
        };
        Line { kind: flat.kind, link: Some(flat.link), shape }
    }
}

fn width(corners: &[Corner], sizes: &[Size], middles: &[i64], flat: &[Flat]) -> i64 {
    let right = |at: usize| corners[at].x + sizes[at].width;
    let boxes = (0..corners.len()).map(right).max();
    let loops = flat.iter().filter(|flat| flat.span == 0).map(|flat| right(flat.left) + LOOP_REACH).max();
    boxes.max(loops).max(middles.iter().copied().max()).unwrap_or_default()
}
