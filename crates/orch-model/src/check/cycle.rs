//! Nodes that wait for each other.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Roster, order};
use crate::text::{Finding, Reporter};

/// Reports one cycle, as a path, for every knot of nodes that wait for each other. All members of an entry need the
/// same nodes, so a cycle between nodes is always one between entries.
pub(super) fn check(roster: &Roster<'_>, cx: &mut Reporter<'_>) -> bool {
    let ordered = order(roster);
    let mut waiting = alloc::vec![true; roster.entries.len()];
    for entry in ordered {
        waiting[entry] = false;
    }
    let is_acyclic = !waiting.contains(&true);
    // Every entry is left behind once, so all walks together are as long as the manifest.
    while let Some(start) = waiting.iter().position(|waits| *waits) {
        if let Some(path) = walk(roster, start, &mut waiting) {
            report(roster, &path, cx);
        }
    }
    is_acyclic
}

/// Follows needs among waiting entries until an entry comes up again; every entry on the way is left behind.
fn walk(roster: &Roster<'_>, start: usize, waiting: &mut [bool]) -> Option<Vec<usize>> {
    let mut path = Vec::from([start]);
    let mut current = start;
    let found = loop {
        let unordered: Vec<usize> = roster.needs(current).collect();
        if let Some(again) = unordered.iter().find_map(|need| path.iter().position(|seen| seen == need)) {
            break Some(again);
        }
        match unordered.into_iter().find(|need| waiting[*need]) {
            Some(next) => {
                path.push(next);
                current = next;
            }
            None => break None,
        }
    };
    for entry in &path {
        waiting[*entry] = false;
    }
    found.map(|again| path.split_off(again))
}

fn report(roster: &Roster<'_>, path: &[usize], cx: &mut Reporter<'_>) {
    let first = path.iter().copied().min().unwrap_or_default();
    let turn = path.iter().position(|entry| *entry == first).unwrap_or_default();
    let mut names: Vec<String> = path[turn..]
        .iter()
        .chain(&path[..turn])
        .map(|entry| format!("`{}`", *roster.entries[*entry].name))
        .collect();
    names.extend(names.first().cloned());
    if let Some((_, span)) = roster.entries[first].name.known() {
        let message = format!("these nodes wait for each other: {}", names.join(" -> "));
        cx.report(
            Finding::new(span, message).hint("each arrow is a `parent` or a `depends_on`: take one out"),
        );
    }
}
