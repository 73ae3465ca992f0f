//! The order of each row: every point near the middle of those it is linked to, so that few lines cross.

use alloc::vec::Vec;

use super::int;
use super::rows::Rows;

/// How often all rows are sorted, downwards and upwards in turn. More than a few times changes little.
const SWEEPS: usize = 10;

/// Fractions of a position, so that the middle of two neighbours is not rounded to one of them.
const FINE: i64 = 1024;

/// Sorts every row, and keeps the best order that was seen.
pub(super) fn untangle(rows: &mut Rows) {
    let (up, down) = neighbours(rows);
    let boxes = rows.boxes;
    let mut at = positions(&rows.lists, rows.row_of.len());
    for row in &mut rows.lists {
        sort(row, &up, boxes, &mut at);
    }
    let mut current = rows.lists.clone();
    let mut fewest = crossings(&current, &down, &at);
    for sweep in 1..SWEEPS {
        if fewest == 0 {
            break;
        }
        if sweep % 2 == 0 {
            for row in &mut current {
                sort(row, &up, boxes, &mut at);
            }
        } else {
            for row in current.iter_mut().rev() {
                sort(row, &down, boxes, &mut at);
            }
        }
        let count = crossings(&current, &down, &at);
        if count < fewest {
            fewest = count;
            rows.lists.clone_from(&current);
        }
    }
}

/// The points that each point is linked to in the row above, and in the row below.
pub(super) fn neighbours(rows: &Rows) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut up = alloc::vec![Vec::new(); rows.row_of.len()];
    let mut down = up.clone();
    let is_short = |from: usize, to: usize| rows.row_of[from] + 1 == rows.row_of[to];
    for piece in rows.pieces.iter().filter(|piece| is_short(piece.from, piece.to)) {
        down[piece.from].push(piece.to);
        up[piece.to].push(piece.from);
    }
    (up, down)
}

fn positions(rows: &[Vec<usize>], points: usize) -> Vec<i64> {
    let mut at = alloc::vec![0; points];
    for row in rows {
        number(row, &mut at);
    }
    at
}

fn number(row: &[usize], at: &mut [i64]) {
    for (position, point) in row.iter().enumerate() {
        at[*point] = int(position);
    }
}

fn sort(row: &mut Vec<usize>, neighbours: &[Vec<usize>], boxes: usize, at: &mut [i64]) {
    let wanted = |point: usize| {
        let near = &neighbours[point];
        let sum: i64 = near.iter().map(|other| at[*other] * FINE).sum();
        // A point without neighbours stays about where it is.
        sum.checked_div(int(near.len())).unwrap_or(at[point] * FINE)
    };
    let mut keyed: Vec<(i64, i64, usize)> =
        row.iter().map(|point| (wanted(*point), at[*point], *point)).collect();
    keyed.sort_unstable();
    row.clear();
    for equals in keyed.chunk_by(|a, b| a.0 == b.0) {
        // A line that goes on passes between its siblings; beside them, each row would stand further out.
        let (passing, own): (Vec<usize>, Vec<usize>) =
            equals.iter().map(|(_, _, point)| *point).partition(|point| *point >= boxes);
        let (left, right) = own.split_at(own.len() / 2);
        row.extend(left.iter().chain(&passing).chain(right));
    }
    number(row, at);
}

/// How many pairs of lines cross, over all rows.
fn crossings(rows: &[Vec<usize>], down: &[Vec<usize>], at: &[i64]) -> usize {
    let row_crossings = |row: &Vec<usize>| {
        let mut ends: Vec<usize> = Vec::new();
        for point in row {
            let start = ends.len();
            ends.extend(down[*point].iter().map(|to| usize::try_from(at[*to]).unwrap_or_default()));
            ends[start..].sort_unstable();
        }
        inversions(&ends)
    };
    rows.iter().map(row_crossings).sum()
}

/// How many pairs stand in the wrong order, counted with a tree of sums.
fn inversions(ends: &[usize]) -> usize {
    let size = ends.iter().max().map_or(0, |last| last + 1);
    let mut tree = alloc::vec![0_usize; size + 1];
    let mut count = 0;
    for (seen, end) in ends.iter().enumerate() {
        let mut not_after = 0;
        let mut node = end + 1;
        while node > 0 {
            not_after += tree[node];
            node &= node - 1;
        }
        count += seen - not_after;
        let mut node = end + 1;
        while node <= size {
            tree[node] += 1;
            node += node & node.wrapping_neg();
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::inversions;

    #[test]
    fn each_pair_in_the_wrong_order_counts_once() {
        assert_eq!(inversions(&[]), 0);
        assert_eq!(inversions(&[0, 1, 1, 2]), 0);
        assert_eq!(inversions(&[2, 1, 0]), 3);
        assert_eq!(inversions(&[1, 0, 3, 2, 0]), 5);
    }
}
