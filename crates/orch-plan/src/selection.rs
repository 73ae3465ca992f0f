//! `--only`: which nodes of a fleet a command is about.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str::FromStr;

use orch_model::{Fleet, Node, NodeName, Problem, Problems, Tag};

/// Which nodes a command is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those that one of these picks.
    Only(Vec<Selector>),
}

/// One way to pick nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// By name, or by the name that `count` nodes share.
    Name(NodeName),
    /// The same, with everything that lives on them.
    WithChildren(NodeName),
    /// By tag.
    Tag(Tag),
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(tag) = text.strip_prefix("tag:") {
            return tag.parse().map(Self::Tag);
        }
        match text.strip_suffix('+') {
            Some(name) => name.parse().map(Self::WithChildren),
            None => text.parse().map(Self::Name),
        }
    }
}

impl core::fmt::Display for Selector {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::WithChildren(name) => write!(f, "{name}+"),
            Self::Tag(tag) => write!(f, "tag:{tag}"),
        }
    }
}

impl Selection {
    /// A selection of these, or of all where there are none.
    pub fn of(selectors: Vec<Selector>) -> Self {
        if selectors.is_empty() { Self::All } else { Self::Only(selectors) }
    }

    /// Whether a node of this name is meant, though the fleet may not describe it.
    pub(crate) fn names(&self, node: &NodeName) -> bool {
        match self {
            Self::All => true,
            Self::Only(selectors) => selectors.iter().any(|selector| selector.names(node)),
        }
    }

    /// Whether each node of the fleet is picked. A selector that picks nothing, neither here nor among `others`, is a
    /// mistake.
    pub(crate) fn pick(&self, fleet: &Fleet, others: &[&NodeName]) -> Result<Vec<bool>, Problems> {
        let Self::Only(selectors) = self else {
            return Ok(alloc::vec![true; fleet.nodes.len()]);
        };
        let mut picked = alloc::vec![false; fleet.nodes.len()];
        let mut problems = Vec::new();
        for selector in selectors {
            let mut matched = others.iter().any(|other| selector.names(other));
            for (node, picked) in fleet.nodes.iter().zip(&mut picked) {
                if selector.picks(node) {
                    matched = true;
                    *picked = true;
                }
            }
            if let Selector::WithChildren(name) = selector {
                pick_children(fleet, name, &mut picked);
            }
            if !matched {
                problems.push(unmatched(selector, fleet));
            }
        }
        if problems.is_empty() { Ok(picked) } else { Err(Problems::new(problems)) }
    }
}

impl Selector {
    fn names(&self, node: &NodeName) -> bool {
        matches!(self, Self::Name(name) | Self::WithChildren(name) if name == node)
    }

    fn picks(&self, node: &Node) -> bool {
        match self {
            Self::Name(name) | Self::WithChildren(name) => node.name() == name || node.entry == *name,
            Self::Tag(tag) => node.tags.contains(tag),
        }
    }
}

/// Picks everything that lives on the named nodes, at any depth; parents come before children in a fleet.
fn pick_children(fleet: &Fleet, name: &NodeName, picked: &mut [bool]) {
    let mut inside: BTreeSet<&NodeName> = BTreeSet::new();
    for (node, picked) in fleet.nodes.iter().zip(picked) {
        let on_one = node.parent.as_ref().is_some_and(|parent| inside.contains(parent));
        if on_one || node.name() == name || node.entry == *name {
            inside.insert(node.name());
            *picked = true;
        }
    }
}

fn unmatched(selector: &Selector, fleet: &Fleet) -> Problem {
    let manifest = &fleet.manifest;
    let problem =
        Problem::with_request(format!("--only {selector} matches no node of manifest `{manifest}`"));
    let mut tags: BTreeMap<&Tag, usize> = BTreeMap::new();
    for tag in fleet.nodes.iter().flat_map(|node| node.tags.iter()) {
        *tags.entry(tag).or_default() += 1;
    }
    let known: Vec<&str> = match selector {
        Selector::Tag(_) => tags.keys().map(|tag| tag.as_str()).take(12).collect(),
        _ => fleet.nodes.iter().map(|node| node.name().as_str()).take(12).collect(),
    };
    match (selector, known.is_empty()) {
        (Selector::Tag(_), true) => problem.hint("no node of it has a tag"),
        (_, true) => problem,
        _ => problem.hint(format!("choose from `{}`", known.join("`, `"))),
    }
}
