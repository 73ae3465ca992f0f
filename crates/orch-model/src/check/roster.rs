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
    /// The entries that must be ready before each entry: its parent, then what it depends on.
    needs: Vec<Vec<usize>>,
    /// The entries in an order in which each comes after what it needs; among equals, file order. Entries on a cycle
    /// are left out.
    order: Vec<usize>,
    /// Whether every entry has its members; where not, references to the missing ones say nothing.
    pub(crate) is_complete: bool,
}

impl<'m> Roster<'m> {
    /// Writes out every count, and reports names that are used twice.
    pub(crate) fn new(entries: &'m [ManifestNode], cx: &mut Reporter<'_>) -> Self {
        let mut roster = Self {
            entries,
            members: Vec::new(),
            ranges: Vec::new(),
            by_name: BTreeMap::new(),
            needs: Vec::new(),
            order: Vec::new(),
            is_complete: true,
        };
        for (index, entry) in entries.iter().enumerate() {
            let start = roster.members.len();
            let mut twice = roster.add_members(index, entry, cx);
            let range = start..roster.members.len();
            if let Some((name, _)) = entry.name.known()
                && range.len() > 1
            {
                twice = roster.claim(name, range.clone()).map(|first| (name.clone(), first)).or(twice);
            }
            if let Some((name, first)) = twice {
                roster.refuse_second(&name, first, entry, cx);
            }
            roster.ranges.push(range);
        }
        roster.needs = entries.iter().map(|entry| roster.needed_by(entry)).collect();
        roster.order = order(&roster.needs);
        roster
    }

    fn needed_by(&self, entry: &ManifestNode) -> Vec<usize> {
        let references = entry.parent.iter().chain(&entry.depends_on);
        references.filter_map(Located::known).filter_map(|(name, _)| self.entry_of(name)).collect()
    }

    /// Adds the members of an entry; yields the first of their names that is taken, with the entry that has it.
    fn add_members(
        &mut self,
        index: usize,
        entry: &ManifestNode,
        cx: &mut Reporter<'_>,
    ) -> Option<(NodeName, usize)> {
        let (name, span) = entry.name.known()?;
        let count = entry.count.get() as usize;
        if self.members.len() + count > MAX_NODES {
            if core::mem::replace(&mut self.is_complete, false) {
                cx.report(Finding::new(span, format!("a manifest describes at most {MAX_NODES} nodes")));
            }
            return None;
        }
        let mut twice = None;
        for ordinal in 1..=count {
            let name = if count == 1 { Ok(name.clone()) } else { format!("{name}-{ordinal}").parse() };
            match name {
                Ok(name) => {
                    let at = self.members.len();
                    self.members.push(Member { name: name.clone(), entry: index });
                    let taken = self.claim(&name, at..at + 1);
                    twice = twice.or_else(|| taken.map(|first| (name, first)));
                }
                Err(why) => {
                    self.is_complete = false;
                    cx.report(Finding::new(span, format!("with its number, {why}")));
                    return None;
                }
            }
        }
        twice
    }

    /// Gives a name to members, unless another entry has it: then that one keeps it.
    fn claim(&mut self, name: &NodeName, range: Range<usize>) -> Option<usize> {
        let other = self.by_name.insert(name.clone(), range)?;
        let first = self.members[other.start].entry;
        self.by_name.insert(name.clone(), other);
        Some(first)
    }

    /// One report is enough for an entry, of however many nodes the names are taken.
    fn refuse_second(&self, name: &NodeName, first: usize, second: &ManifestNode, cx: &mut Reporter<'_>) {
        if let (Some((_, span)), Some((_, first))) = (second.name.known(), self.entries[first].name.known()) {
            let line = cx.line_of(first);
            let hint = format!("the first one stands in line {line}");
            cx.report(Finding::new(span, format!("node `{name}` is defined twice")).hint(hint));
        }
    }

    /// Whether every node that another one names exists.
    pub(crate) fn is_closed(&self) -> bool {
        let relations = self.entries.iter().flat_map(|entry| {
            entry.parent.iter().chain(&entry.depends_on).chain(&entry.peers).map(|name| &**name)
        });
        relations.into_iter().all(|name| self.by_name.contains_key(name))
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
    pub(crate) fn needs(&self, entry: usize) -> &[usize] {
        &self.needs[entry]
    }

    /// The entries in an order in which each comes after what it needs; among equals, file order. Entries on a cycle
    /// are left out.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }
}

fn order(needs: &[Vec<usize>]) -> Vec<usize> {
    let count = needs.len();
    let mut missing: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut dependents = alloc::vec![Vec::new(); count];
    for (entry, needs) in needs.iter().enumerate() {
        for need in needs {
            dependents[*need].push(entry);
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
