//! Which row each box is in, and which rows a long line passes through.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{EdgeKind, Link};

/// A row may always hold this many boxes; large graphs have longer rows.
const MIN_ROW: usize = 8;

/// Boxes and passing points in rows. Points that are smaller than `boxes` are boxes; the others are places where a
/// line passes through a row.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) boxes: usize,
    pub(super) lists: Vec<Vec<usize>>,
    /// The row of each point.
    pub(super) row_of: Vec<usize>,
    /// The pieces of all links that leave their row.
    pub(super) pieces: Vec<Piece>,
    /// The first row of boxes that no link touches; they fill rows of their own, as a table.
    pub(super) first_loose: usize,
}

/// A piece of one or more links, from a point to one in a row below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: EdgeKind,
    /// The link that ends with this piece.
    pub(super) link: Option<usize>,
}

impl Rows {
    pub(super) fn new(boxes: usize, links: &[Link]) -> Self {
        let (lists, first_loose) = fill(boxes, links);
        let mut row_of = alloc::vec![0; boxes];
        for (row, members) in lists.iter().enumerate() {
            for member in members {
                row_of[*member] = row;
            }
        }
        let mut rows = Self { boxes, lists, row_of, pieces: Vec::new(), first_loose };
        rows.lead(links);
        rows
    }

    pub(super) fn is_box(&self, point: usize) -> bool {
        point < self.boxes
    }

    /// Leads every link from row to row. Links of one kind from one box share their passing points.
    fn lead(&mut self, links: &[Link]) {
        let mut bundles: BTreeMap<(usize, EdgeKind), Vec<(usize, usize)>> = BTreeMap::new();
        for (index, link) in links.iter().enumerate() {
            // A link upwards exists only in a cycle, or between peers, who have no direction.
            let (upper, lower) = if self.row_of[link.from] <= self.row_of[link.to] {
                (link.from, link.to)
            } else {
                (link.to, link.from)
            };
            if self.row_of[upper] < self.row_of[lower] {
                bundles.entry((upper, link.kind)).or_default().push((lower, index));
            }
        }
        // Beyond this, a line goes straight to its end, below the boxes in between.
        let mut left = 2000 + 4 * self.boxes;
        for ((upper, kind), ends) in bundles {
            self.lead_bundle(upper, kind, ends, &mut left);
        }
    }

    fn lead_bundle(&mut self, upper: usize, kind: EdgeKind, mut ends: Vec<(usize, usize)>, left: &mut usize) {
        ends.sort_by_key(|(lower, _)| self.row_of[*lower]);
        let mut from = upper;
        for (lower, link) in ends {
            while self.row_of[from] + 1 < self.row_of[lower] && *left > 0 {
                *left -= 1;
                let point = self.add_point(self.row_of[from] + 1);
                self.pieces.push(Piece { from, to: point, kind, link: None });
                from = point;
            }
            self.pieces.push(Piece { from, to: lower, kind, link: Some(link) });
        }
    }

    fn add_point(&mut self, row: usize) -> usize {
        let point = self.row_of.len();
        self.row_of.push(row);
        self.lists[row].push(point);
        point
    }
}

/// Puts every box into a row: first those that links touch, level by level, then the loose ones.
fn fill(boxes: usize, links: &[Link]) -> (Vec<Vec<usize>>, usize) {
    let most = MIN_ROW.max(boxes.isqrt() * 5 / 4);
    let mut is_loose = alloc::vec![true; boxes];
    for link in links.iter().filter(|link| link.from != link.to) {
        is_loose[link.from] = false;
        is_loose[link.to] = false;
    }
    let levels = levels(boxes, links);
    let mut members = alloc::vec![Vec::new(); levels.iter().max().map_or(0, |last| last + 1)];
    for point in (0..boxes).filter(|point| !is_loose[*point]) {
        members[levels[point]].push(point);
    }
    sort_by_above(&mut members, links, &levels);
    let mut rows: Vec<Vec<usize>> = members.iter().flat_map(|level| even_chunks(level, most)).collect();
    let first_loose = rows.len();
    let loose: Vec<usize> = (0..boxes).filter(|point| is_loose[*point]).collect();
    let most = if first_loose == 0 { table_width(loose.len()) } else { most };
    rows.extend(even_chunks(&loose, most));
    (rows, first_loose)
}

/// The level of each box: one below the lowest of those that must be ready before it.
fn levels(boxes: usize, links: &[Link]) -> Vec<usize> {
    let mut below = alloc::vec![Vec::new(); boxes];
    let mut missing = alloc::vec![0_usize; boxes];
    let mut has_order = alloc::vec![false; boxes];
    for link in links.iter().filter(|link| link.kind != EdgeKind::Peer && link.from != link.to) {
        below[link.from].push(link.to);
        missing[link.to] += 1;
        has_order[link.from] = true;
        has_order[link.to] = true;
    }
    let mut levels = alloc::vec![0_usize; boxes];
    let mut is_done = alloc::vec![false; boxes];
    let mut ready: Vec<usize> = Vec::new();
    // First the boxes that nothing is above of; then, were there a cycle, it is entered at its first box.
    let roots: Vec<usize> = (0..boxes).filter(|point| missing[*point] == 0).collect();
    for start in roots.into_iter().chain(0..boxes) {
        ready.push(start);
        while let Some(point) = ready.pop() {
            if core::mem::replace(&mut is_done[point], true) {
                continue;
            }
            for lower in below[point].iter().filter(|lower| !is_done[**lower]) {
                levels[*lower] = levels[*lower].max(levels[point] + 1);
                missing[*lower] -= 1;
                if missing[*lower] == 0 {
                    ready.push(*lower);
                }
            }
        }
    }
    // Whoever has nothing but peers stands beside the first of them.
    for link in links.iter().filter(|link| link.kind == EdgeKind::Peer) {
        match (has_order[link.from], has_order[link.to]) {
            (true, false) => levels[link.to] = levels[link.from],
            (false, true) => levels[link.from] = levels[link.to],
            _ => continue,
        }
        has_order[link.from] = true;
        has_order[link.to] = true;
    }
    levels
}

/// Sorts each level by what is above it, so that siblings stay together when a level is broken into rows.
fn sort_by_above(members: &mut [Vec<usize>], links: &[Link], levels: &[usize]) {
    let mut above = alloc::vec![Vec::new(); levels.len()];
    for link in links.iter().filter(|link| levels[link.from] < levels[link.to]) {
        above[link.to].push(link.from);
    }
    let mut share = alloc::vec![0_usize; levels.len()];
    for level in members {
        let count = level.len();
        level.sort_by_key(|point| {
            let above = &above[*point];
            let sum: usize = above.iter().map(|upper| share[*upper]).sum();
            (sum.checked_div(above.len()).unwrap_or_default(), *point)
        });
        for (at, point) in level.iter().enumerate() {
            share[*point] = at * 1_000_000 / count;
        }
    }
}

/// Breaks a level into as few rows as possible, all about equally long.
fn even_chunks(level: &[usize], most: usize) -> impl Iterator<Item = Vec<usize>> {
    let rows = level.len().div_ceil(most).max(1);
    level.chunks(level.len().div_ceil(rows).max(1)).map(<[usize]>::to_vec)
}

/// How many columns a table of boxes has to be a little wider than high.
fn table_width(boxes: usize) -> usize {
    (boxes.isqrt() + 1).max(4)
}
