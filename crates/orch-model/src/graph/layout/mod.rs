//! Where boxes and lines go: rows from top to bottom, each box below its parent and what it depends on.
//!
//! The way is the usual one of layered drawings: [`rows`] gives every box its row and every long line its way through
//! the rows between, [`order`] untangles the rows, [`place`] moves boxes over each other, [`route`] draws the lines.
//! Lines that leave a box for the same reason share their way as long as they can. Every step takes a time that
//! grows about as the graph does, and ends for any graph, even one with cycles.
//!
//! All numbers are whole pixels, so that the same graph has the same picture on every machine.

mod order;
mod place;
mod route;
mod rows;

use alloc::vec::Vec;

use super::EdgeKind;
pub(super) use route::{Line, Shape};

/// The free space between two boxes of a row.
const BOX_GAP: i64 = 40;

/// The free space beside a line that passes through a row.
const LINE_GAP: i64 = 22;

/// A line between two boxes, which are given by their places in the list of boxes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) kind: EdgeKind,
}

/// How large a box is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: i64,
    pub(super) height: i64,
}

/// The upper left corner of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Corner {
    pub(super) x: i64,
    pub(super) y: i64,
}

/// A finished drawing, whose upper left corner is 0, 0.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) corners: Vec<Corner>,
    pub(super) lines: Vec<Line>,
    pub(super) size: Size,
}

/// Finds a place for every box and a way for every link.
pub(super) fn layout(sizes: &[Size], links: &[Link]) -> Layout {
    let mut rows = rows::Rows::new(sizes.len(), links);
    order::untangle(&mut rows);
    let middles = place::middles(&rows, sizes);
    route::route(&rows, sizes, &middles, links)
}

/// A count as a number that can be computed with.
fn int(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 150, height: 100 };

    /// Links that are made up, the same on every run; with `is_cyclic` also from later boxes to earlier ones.
    fn made_up(boxes: usize, links: usize, is_cyclic: bool) -> Vec<Link> {
        let mut state = 42_usize;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut link = || {
            let (one, other) = (next(boxes), next(boxes));
            let kind = EdgeKind::ALL[next(3)];
            let (from, to) = if is_cyclic { (one, other) } else { (one.min(other), one.max(other)) };
            Link { from, to, kind }
        };
        (0..links).map(|_| link()).filter(|link| is_cyclic || link.from != link.to).collect()
    }

    fn overlap(one: Corner, other: Corner) -> bool {
        (one.x - other.x).abs() < SIZE.width && (one.y - other.y).abs() < SIZE.height
    }

    #[test]
    fn no_two_boxes_overlap_and_all_lie_inside_the_drawing() {
        for boxes in [1, 2, 9, 60] {
            let Layout { corners, size, .. } =
                layout(&alloc::vec![SIZE; boxes], &made_up(boxes, boxes * 2, false));
            assert_eq!(corners.len(), boxes);
            for (at, corner) in corners.iter().enumerate() {
                assert!(corner.x >= 0 && corner.x + SIZE.width <= size.width, "{corner:?} {size:?}");
                assert!(corner.y >= 0 && corner.y + SIZE.height <= size.height, "{corner:?} {size:?}");
                assert!(corners[..at].iter().all(|other| !overlap(*corner, *other)), "{corner:?}");
            }
        }
    }

    #[test]
    fn what_must_be_ready_first_is_drawn_above() {
        let links = made_up(60, 100, false);
        let Layout { corners, .. } = layout(&[SIZE; 60], &links);
        for link in links.iter().filter(|link| link.kind != EdgeKind::Peer) {
            assert!(corners[link.from].y + SIZE.height < corners[link.to].y, "{link:?}");
        }
    }

    #[test]
    fn a_line_that_passes_through_a_row_touches_no_box_of_it() {
        let Layout { corners, lines, .. } = layout(&[SIZE; 60], &made_up(60, 100, false));
        let falls = lines.iter().filter_map(|line| match line.shape {
            Shape::Fall { to, end, .. } if end > to.y => Some((to, end)),
            _ => None,
        });
        assert!(falls.clone().count() > 10, "there are long lines to look at");
        for (to, end) in falls {
            let is_beside = |corner: &Corner| {
                to.x < corner.x
                    || corner.x + SIZE.width < to.x
                    || corner.y >= end
                    || corner.y + SIZE.height <= to.y
            };
            assert!(corners.iter().all(is_beside), "{to:?}");
        }
    }

    #[test]
    fn every_link_is_drawn_once_even_where_links_form_cycles() {
        for is_cyclic in [false, true] {
            let links = made_up(40, 120, is_cyclic);
            let Layout { lines, .. } = layout(&[SIZE; 40], &links);
            let mut drawn: Vec<usize> = lines.iter().filter_map(|line| line.link).collect();
            drawn.sort_unstable();
            assert_eq!(drawn, (0..links.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_drawing_is_about_as_wide_as_its_longest_row_however_long_its_lines() {
        let chain = (1..3000).flat_map(|to| {
            [(to - 1, EdgeKind::Parent), (0, EdgeKind::DependsOn), (to / 2, EdgeKind::DependsOn)]
                .map(|(from, kind)| Link { from, to, kind })
        });
        let links: Vec<Link> = chain.filter(|link| link.from != link.to).collect();
        let Layout { size, .. } = layout(&alloc::vec![SIZE; 3000], &links);
        assert!(size.width < 3000 * SIZE.width / 10, "{size:?}");
    }

    #[test]
    fn a_graph_without_boxes_has_an_empty_drawing() {
        let Layout { size, .. } = layout(&[], &[]);
        assert_eq!(size, Size { width: 0, height: 0 });
    }
}
