//! Nodes that wait for each other.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Roster;
use crate::text::{Finding, Reporter};

/// How many names of a long cycle are told at each end.
const TOLD: usize = 6;

/// Reports one cycle, as a path, for every knot of nodes that wait for each other. All members of an entry need the
/// same nodes, so a cycle between nodes is always one between entries.
pub(super) fn check(roster: &Roster<'_>, cx: &mut Reporter<'_>) -> bool {
    if roster.order().len() == roster.entries.len() {
        return true;
    }
    let needs: Vec<Vec<usize>> =
        (0..roster.entries.len()).map(|entry| roster.needs(entry).to_vec()).collect();
    let knot_of = knots(&needs);
    let mut told = alloc::vec![false; needs.len()];
    for start in 0..needs.len() {
        // A knot is told at its first entry in the file; every entry is looked at for one knot only.
        if !core::mem::replace(&mut told[knot_of[start]], true)
            && let Some(path) = shortest_cycle(&needs, &knot_of, start)
        {
            report(roster, &path, cx);
        }
    }
    false
}

/// Numbers the strongly connected parts of a graph: two entries have the same number when each needs the other, by
/// whatever way. Tarjan's algorithm, with a stack of its own because a manifest may be a chain of 100,000 nodes.
fn knots(needs: &[Vec<usize>]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let mut knot_of = alloc::vec![UNSEEN; needs.len()];
    let mut seen_at = alloc::vec![UNSEEN; needs.len()];
    let mut lowest = alloc::vec![UNSEEN; needs.len()];
    let (mut clock, mut open, mut knot) = (0, Vec::new(), 0);
    for root in 0..needs.len() {
        let mut calls = Vec::from([(root, 0)]);
        while let Some((entry, next)) = calls.pop() {
            if next == 0 {
                if seen_at[entry] != UNSEEN {
                    continue;
                }
                (seen_at[entry], lowest[entry]) = (clock, clock);
                clock += 1;
                open.push(entry);
            } else {
                let before = needs[entry][next - 1];
                if knot_of[before] == UNSEEN {
                    lowest[entry] = lowest[entry].min(lowest[before]);
                }
            }
            if let Some(need) = needs[entry].get(next) {
                calls.push((entry, next + 1));
                calls.push((*need, 0));
            } else if lowest[entry] == seen_at[entry] {
                while let Some(member) = open.pop() {
                    knot_of[member] = knot;
                    if member == entry {
                        break;
                    }
                }
                knot += 1;
            }
        }
    }
    knot_of
}

/// The shortest way from an entry back to itself, if it is on a cycle at all.
fn shortest_cycle(needs: &[Vec<usize>], knot_of: &[usize], start: usize) -> Option<Vec<usize>> {
    let mut came_from = alloc::collections::BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(entry) = queue.pop_front() {
        for need in needs[entry].iter().copied().filter(|need| knot_of[*need] == knot_of[start]) {
            if need == start {
                let mut path = Vec::from([entry]);
                while let Some(before) = came_from.get(&path[path.len() - 1]) {
                    path.push(*before);
                }
                path.reverse();
                return Some(path);
            }
            if let alloc::collections::btree_map::Entry::Vacant(vacant) = came_from.entry(need) {
                vacant.insert(entry);
                queue.push_back(need);
            }
        }
    }
    None
}

fn report(roster: &Roster<'_>, path: &[usize], cx: &mut Reporter<'_>) {
    let name = |entry: &usize| format!("`{}`", *roster.entries[*entry].name);
    let mut names: Vec<String> = if path.len() > 2 * TOLD {
        let between = format!("… {} more …", path.len() - 2 * TOLD);
        let (head, tail) = (&path[..TOLD], &path[path.len() - TOLD..]);
        head.iter().map(name).chain([between]).chain(tail.iter().map(name)).collect()
    } else {
        path.iter().map(name).collect()
    };
    names.extend(names.first().cloned());
    let what = match path {
        [only] => format!("node `{}` waits for itself", *roster.entries[*only].name),
        _ => format!("these nodes wait for each other: {}", names.join(" -> ")),
    };
    if let Some((_, span)) = path.first().and_then(|first| roster.entries[*first].name.known()) {
        let hint = match path {
            [_] => "take its name out of its `parent` or `depends_on`",
            _ => "each arrow is a `parent` or a `depends_on`: take one out",
        };
        cx.report(Finding::new(span, what).hint(hint));
    }
}
