//! Peers are mutual: whoever names one is named by it.

use alloc::format;
use core::ops::Range;

use super::Roster;
use crate::decode::Located;
use crate::text::{Finding, Reporter};

pub(super) fn check(roster: &Roster<'_>, cx: &mut Reporter<'_>) {
    for (entry, node) in roster.entries.iter().enumerate() {
        let own = roster.members_of(entry);
        for (peer, span) in node.peers.iter().filter_map(Located::known) {
            let Some(range) = roster.find(peer) else {
                continue;
            };
            if range == own && own.len() == 1 {
                cx.report(Finding::new(span, format!("node `{peer}` is no peer of itself")));
                continue;
            }
            let other = roster.members[range.start].entry;
            if let Some(missing) = first_unnamed(roster, other, &own) {
                let name = &roster.members[missing].name;
                let message =
                    format!("node `{}` has the peer `{peer}`, which does not name `{name}`", *node.name);
                cx.report(Finding::new(span, message).hint(format!("add `{name}` to the peers of `{peer}`")));
            }
        }
    }
}

/// The first of `wanted` that `entry` does not name as a peer.
fn first_unnamed(roster: &Roster<'_>, entry: usize, wanted: &Range<usize>) -> Option<usize> {
    let named = |member: usize| {
        let mut peers = roster.entries[entry].peers.iter().filter_map(Located::known);
        peers.any(|(name, _)| roster.find(name).is_some_and(|range| range.contains(&member)))
    };
    wanted.clone().find(|member| !named(*member))
}
