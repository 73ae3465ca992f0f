//! Peers are mutual: whoever names one is named by it.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use super::Roster;
use crate::decode::Located;
use crate::text::{Finding, Reporter};

pub(super) fn check(roster: &Roster<'_>, cx: &mut Reporter<'_>) {
    let named: Vec<Vec<Range<usize>>> =
        (0..roster.entries.len()).map(|entry| named_by(roster, entry)).collect();
    for (entry, node) in roster.entries.iter().enumerate() {
        let own = roster.members_of(entry);
        for (peer, span) in node.peers.iter().filter_map(Located::known) {
            let Some(range) = roster.find(peer) else {
                continue;
            };
            if range == own && own.len() == 1 {
                cx.report(
                    Finding::new(span, format!("node `{peer}` names itself as a peer")).hint("take it out"),
                );
                continue;
            }
            let other = roster.members[range.start].entry;
            if let Some(missing) = first_unnamed(&named[other], &own) {
                let name = &roster.members[missing].name;
                let message =
                    format!("node `{}` has the peer `{peer}`, which does not name `{name}`", *node.name);
                cx.report(Finding::new(span, message).hint(format!("add `{name}` to the peers of `{peer}`")));
            }
        }
    }
}

/// The members that an entry names as peers, as ranges in order that neither touch nor overlap: a mesh of n nodes
/// asks n² times whether one is among them.
fn named_by(roster: &Roster<'_>, entry: usize) -> Vec<Range<usize>> {
    let peers = roster.entries[entry].peers.iter().filter_map(Located::known);
    let mut ranges: Vec<Range<usize>> = peers.filter_map(|(name, _)| roster.find(name)).collect();
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The first of `wanted` that is not named.
fn first_unnamed(named: &[Range<usize>], wanted: &Range<usize>) -> Option<usize> {
    let at = named.partition_point(|range| range.end <= wanted.start);
    let covered =
        named.get(at).filter(|range| range.start <= wanted.start).map_or(wanted.start, |range| range.end);
    (covered < wanted.end).then_some(covered)
}
