//! The nodes of a manifest by name, with `count` written out.
//!
//! A reference may name one node, or the entry that stands for several; both are found here.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use crate::decode::Located;
use crate::files::ManifestNode;
use crate::text::{Finding, Reporter};
use crate::word::NodeName;

/// How many nodes one manifest may describe.
const MAX_NODES: usize = 200_000;

/// One node, and the entry of the manifest that describes it.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: NodeName,
    pub(crate) entry: usize,
}

/// Every node of a manifest, in file order.
#[derive(Debug)]
pub(crate) struct Roster<'m> {
    pub(crate) entries: &'m [ManifestNode],
    pub(crate) members: Vec<Member>,
    /// The members of each entry.
    ranges: Vec<Range<usize>>,
    by_name: BTreeMap<NodeName, Range<usize>>,
}

impl<'m> Roster<'m> {
    /// Writes out every count, and reports names that are used twice.
    pub(crate) fn new(entries: &'m [ManifestNode], cx: &mut Reporter<'_>) -> Self {
        let mut roster = Self { entries, members: Vec::new(), ranges: Vec::new(), by_name: BTreeMap::new() };
        for (index, entry) in entries.iter().enumerate() {
            let start = roster.members.len();
            roster.add_members(index, entry, cx);
            let range = start..roster.members.len();
            if let Some((name, _)) = entry.name.known()
                && range.len() > 1
            {
                roster.claim(name.clone(), range.clone(), &entry.name, cx);
            }
            roster.ranges.push(range);
        }
        roster
    }

    fn add_members(&mut self, index: usize, entry: &ManifestNode, cx: &mut Reporter<'_>) {
        let Some((name, span)) = entry.name.known() else {
            return;
        };
        let count = entry.count.get() as usize;
        if self.members.len() + count > MAX_NODES {
            cx.report(Finding::new(span, format!("a manifest describes at most {MAX_NODES} nodes")));
            return;
        }
        for ordinal in 1..=count {
            let name = if count == 1 { Ok(name.clone()) } else { format!("{name}-{ordinal}").parse() };
            match name {
                Ok(name) => {
                    let at = self.members.len();
                    self.members.push(Member { name: name.clone(), entry: index });
                    self.claim(name, at..at + 1, &entry.name, cx);
                }
                Err(why) => return cx.report(Finding::new(span, format!("with its number, {why}"))),
            }
        }
    }

    fn claim(&mut self, name: NodeName, range: Range<usize>, at: &Located<NodeName>, cx: &mut Reporter<'_>) {
        let Some(other) = self.by_name.insert(name.clone(), range) else {
            return;
        };
        let first = &self.entries[self.members[other.start].entry].name;
        if let (Some((_, span)), Some((_, first))) = (at.known(), first.known()) {
            let line = cx.line_of(first);
            let hint = format!("the first one stands in line {line}");
            cx.report(Finding::new(span, format!("node `{name}` is defined twice")).hint(hint));
        }
        self.by_name.insert(name, other);
    }

    /// The members that a reference stands for.
    pub(crate) fn find(&self, name: &NodeName) -> Option<Range<usize>> {
        self.by_name.get(name).cloned()
    }

    /// The members that an entry stands for.
    pub(crate) fn members_of(&self, entry: usize) -> Range<usize> {
        self.ranges[entry].clone()
    }

    /// The entry that a reference leads to.
    pub(crate) fn entry_of(&self, name: &NodeName) -> Option<usize> {
        self.find(name).map(|range| self.members[range.start].entry)
    }

    /// Every name that a reference could mean.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.by_name.keys().map(NodeName::as_str)
    }

    /// The entries that must be ready before an entry: its parent, then what it depends on.
    pub(crate) fn needs(&self, entry: usize) -> impl Iterator<Item = usize> {
        let entry = &self.entries[entry];
        let references = entry.parent.iter().chain(&entry.depends_on);
        references.filter_map(|reference| reference.known()).filter_map(|(name, _)| self.entry_of(name))
    }
}

/// The entries in an order in which each comes after what it needs; among equals, file order. Entries on a cycle
/// are left out.
pub(crate) fn order(roster: &Roster<'_>) -> Vec<usize> {
    let count = roster.entries.len();
    let mut missing = alloc::vec![0_usize; count];
    let mut dependents = alloc::vec![Vec::new(); count];
    for (entry, missing) in missing.iter_mut().enumerate() {
        for need in roster.needs(entry) {
            *missing += 1;
            dependents[need].push(entry);
        }
    }
    let mut ready: BinaryHeap<_> = (0..count).filter(|entry| missing[*entry] == 0).map(Reverse).collect();
    let mut ordered = Vec::with_capacity(count);
    while let Some(Reverse(entry)) = ready.pop() {
        ordered.push(entry);
        for dependent in &dependents[entry] {
            missing[*dependent] -= 1;
            if missing[*dependent] == 0 {
                ready.push(Reverse(*dependent));
            }
        }
    }
    ordered
}
