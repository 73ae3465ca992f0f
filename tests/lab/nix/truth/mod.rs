//! What a report says of a node is what is read from that node: for every way in which an activation can go wrong, and for
//! everything that can happen to those who watch over it meanwhile.
//!
//! One cell is a node that runs a good system and is given another one. The fault is made when the new system has done what it
//! does, and the node is read from outside at the end, by links and files, without a word of orch's.

mod cell;
mod fault;
mod news;
mod way;

use super::scene::skips;
use crate::common::{Need, lacks};
use crate::kill::{chosen, sweep_at_once};
use cell::Cell;
use fault::Fault;
use way::Way;

/// How many cells are worked on at once: they wait for most of their time.
const AT_ONCE: usize = 6;
/// How much of the matrix is gone through where not all of it is asked for.
const SHARE: usize = 4;

/// Every way with every fault, so that a share of them has some of each.
fn matrix() -> Vec<Cell> {
    let cells =
        Way::ALL.iter().flat_map(|way| Fault::ALL.iter().map(|fault| Cell { way: *way, fault: *fault }));
    let mut cells: Vec<Cell> = cells.collect();
    // Each row begins one further to the right.
    cells.sort_by_key(|cell| (cell.fault as usize + cell.way as usize) % Fault::ALL.len());
    let rows = cells.len() / SHARE;
    (0..cells.len()).map(|place| cells[place % SHARE * rows + place / SHARE]).collect()
}

#[test]
fn what_is_said_of_a_node_is_what_is_read_from_it_whatever_goes_wrong() {
    if skips() || lacks(&[Need::Program("nsenter"), Need::Program("ip"), Need::Program("fallocate")]) {
        return;
    }
    sweep_at_once(AT_ONCE, chosen(matrix(), SHARE), Cell::check);
}

#[test]
fn every_share_of_the_matrix_has_every_fault_or_every_way_and_all_of_them_are_all() {
    let matrix = matrix();
    assert_eq!(matrix.len(), Way::ALL.len() * Fault::ALL.len());
    for way in Way::ALL {
        for fault in Fault::ALL {
            let is_it = |cell: &&Cell| cell.way == way && cell.fault == fault;
            assert_eq!(matrix.iter().filter(is_it).count(), 1, "{way:?} {fault:?}");
        }
    }
    for share in 0..SHARE {
        let part: Vec<&Cell> = matrix.iter().skip(share).step_by(SHARE).collect();
        for way in Way::ALL {
            assert_eq!(part.iter().filter(|cell| cell.way == way).count(), 1, "{way:?} in share {share}");
        }
        for fault in Fault::ALL {
            assert!(part.iter().any(|cell| cell.fault == fault), "{fault:?} in share {share}");
        }
    }
}
