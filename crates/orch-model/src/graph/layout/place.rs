//! How far to the right each point of a row is: as near to the middle of its neighbours as its row allows.

use alloc::vec::Vec;

use super::order::neighbours;
use super::rows::Rows;
use super::{BOX_GAP, LINE_GAP, Size, int};

/// How often all rows are moved, downwards and upwards in turn.
const SWEEPS: usize = 12;

/// A line that passes through several rows stays straight: were it pushed a little in each row, it would drift.
const LINE_WEIGHT: i64 = 100;

/// The middle of every point; the leftmost edge of all is 0.
pub(super) fn middles(rows: &Rows, sizes: &[Size]) -> Vec<i64> {
    let (up, down) = neighbours(rows);
    let width = |point: usize| sizes.get(point).map_or(0, |size| size.width);
    let mut middles = alloc::vec![0; rows.row_of.len()];
    let (linked, loose) = rows.lists.split_at(rows.first_loose);
    for row in linked {
        pack(row, rows, &width, &mut middles);
    }
    let (left, right) = bounds(linked, &width, &middles);
    let edge = (right - left) * 5 / 8;
    for sweep in 0..SWEEPS {
        if sweep % 2 == 0 {
            for row in linked {
                settle(row, rows, &width, edge, [&up, &down], &mut middles);
            }
        } else {
            for row in linked.iter().rev() {
                settle(row, rows, &width, edge, [&down, &up], &mut middles);
            }
        }
    }
    let (left, right) = bounds(linked, &width, &middles);
    set_table(loose, &width, i64::midpoint(left, right), &mut middles);
    let (left, _) = bounds(&rows.lists, &width, &middles);
    for middle in &mut middles {
        *middle -= left;
    }
    middles
}

/// The distance between the middles of two neighbours of a row.
fn distance(left: usize, right: usize, rows: &Rows, width: &impl Fn(usize) -> i64) -> i64 {
    let gap = if rows.is_box(left) && rows.is_box(right) { BOX_GAP } else { LINE_GAP };
    i64::midpoint(width(left), width(right)) + gap
}

/// Places a row around 0, as tight as it goes.
fn pack(row: &[usize], rows: &Rows, width: &impl Fn(usize) -> i64, middles: &mut [i64]) {
    let length: i64 = row.windows(2).map(|pair| distance(pair[0], pair[1], rows, width)).sum();
    let mut x = -length / 2;
    for (position, point) in row.iter().enumerate() {
        if let Some(before) = position.checked_sub(1) {
            x += distance(row[before], *point, rows, width);
        }
        middles[*point] = x;
    }
}

/// Moves the points of a row to the middle of their neighbours without changing their order.
///
/// Of all places that keep the order and the gaps, these have the least sum of squared distances to the wanted ones:
/// points that push each other are pooled and moved together, which takes one pass. No row goes further to the side
/// than `edge`: the picture is at most a quarter wider than its longest row.
fn settle(
    row: &[usize],
    rows: &Rows,
    width: &impl Fn(usize) -> i64,
    edge: i64,
    neighbours: [&[Vec<usize>]; 2],
    middles: &mut [i64],
) {
    let mut pools: Vec<Pool> = Vec::with_capacity(row.len());
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0;
    for (position, point) in row.iter().enumerate() {
        if let Some(before) = position.checked_sub(1) {
            offset += distance(row[before], *point, rows, width);
        }
        offsets.push(offset);
        let (wanted, weight) = wish(*point, rows, neighbours, middles);
        let mut pool = Pool { sum: (wanted - offset) * weight, weight, points: 1 };
        while let Some(last) = pools.pop_if(|last| last.middle() > pool.middle()) {
            pool = Pool {
                sum: pool.sum + last.sum,
                weight: pool.weight + last.weight,
                points: pool.points + last.points,
            };
        }
        pools.push(pool);
    }
    let shifts = pools.iter().flat_map(|pool| core::iter::repeat_n(pool.middle(), pool.points));
    for ((point, along), shift) in row.iter().zip(offsets).zip(shifts) {
        middles[*point] = shift.min(edge - offset).max(-edge) + along;
    }
}

/// Where a point would like to be, and how much. It looks to the rows that were just moved; with no neighbour there,
/// to the other side, so that nothing stays behind.
fn wish(point: usize, rows: &Rows, neighbours: [&[Vec<usize>]; 2], middles: &[i64]) -> (i64, i64) {
    let near = neighbours.map(|side| &side[point]).into_iter().find(|near| !near.is_empty());
    let near = near.map_or(&[][..], Vec::as_slice);
    if !rows.is_box(point)
        && let Some(same_line) = near.iter().find(|other| !rows.is_box(**other))
    {
        return (middles[*same_line], LINE_WEIGHT);
    }
    let sum: i64 = near.iter().map(|other| middles[*other]).sum();
    (sum.checked_div(int(near.len())).unwrap_or(middles[point]), int(near.len().clamp(1, 3)))
}

/// Points that move together.
struct Pool {
    sum: i64,
    weight: i64,
    points: usize,
}

impl Pool {
    fn middle(&self) -> i64 {
        self.sum.div_euclid(self.weight)
    }
}

/// Places boxes without links in columns, around `center`.
fn set_table(rows: &[Vec<usize>], width: &impl Fn(usize) -> i64, center: i64, middles: &mut [i64]) {
    let widest = rows.iter().flatten().map(|point| width(*point)).max().unwrap_or_default();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let step = widest + BOX_GAP;
    let first = center - int(columns.saturating_sub(1)) * step / 2;
    for row in rows {
        for (column, point) in row.iter().enumerate() {
            middles[*point] = first + int(column) * step;
        }
    }
}

fn bounds(rows: &[Vec<usize>], width: &impl Fn(usize) -> i64, middles: &[i64]) -> (i64, i64) {
    let ends = rows.iter().filter_map(|row| Some((*row.first()?, *row.last()?)));
    let left = ends.clone().map(|(first, _)| middles[first] - width(first) / 2).min();
    let right = ends.map(|(_, last)| middles[last] + width(last) / 2).max();
    (left.unwrap_or_default(), right.unwrap_or_default())
}
