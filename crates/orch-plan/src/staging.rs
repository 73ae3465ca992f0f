//! Many nodes a batch at a time: what is asked for, and which node is in which batch.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::plan::{NodePlan, Verb};

/// How many nodes are worked on before the next ones are begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// All at once, as far as they do not wait for each other.
    All,
    /// One after the other.
    Serial,
    /// One, then a tenth, then all.
    Canary,
}

impl Strategy {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Serial => "serial",
            Self::Canary => "canary",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::All, Self::Serial, Self::Canary];
        let found = all.into_iter().find(|strategy| strategy.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is not a strategy: choose from all, serial and canary"))
    }
}

/// How far a batch goes, counted from the first node: `1`, `10%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Share {
    /// So many nodes.
    Nodes(u32),
    /// So many of a hundred, and never less than one node.
    Percent(u8),
}

impl Share {
    /// How many nodes of `all` that is.
    fn of(self, all: usize) -> usize {
        match self {
            Self::Nodes(nodes) => all.min(nodes as usize),
            Self::Percent(percent) => (all * usize::from(percent)).div_ceil(100),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(nodes) => write!(f, "{nodes}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl From<Share> for String {
    fn from(share: Share) -> Self {
        format!("{share}")
    }
}

impl TryFrom<String> for Share {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is not a share of the nodes: write a number such as 1, or a part such as 10%")
        };
        let is_plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match text.strip_suffix('%') {
            Some(digits) if is_plain(digits) => {
                let percent = digits.parse().ok().filter(|percent| (1..=100).contains(percent));
                percent.map(Self::Percent).ok_or_else(wrong)
            }
            None if is_plain(text) => {
                text.parse().ok().filter(|nodes| *nodes > 0).map(Self::Nodes).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

/// How nodes are to be worked on, as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staging {
    /// How many at first, and then.
    pub strategy: Strategy,
    /// How far each batch goes; none leaves that to the strategy. What is left after the last is one more batch.
    pub batches: Vec<Share>,
    /// How many nodes may fail before nothing new is begun.
    pub max_fail: Option<usize>,
    /// Whether nodes that were moved to a new system are taken back where more than that failed.
    pub rollback_succeeded: bool,
}

impl Staging {
    /// All nodes at once; what a failure means is the manifest's to say.
    pub const ALL: Self =
        Self { strategy: Strategy::All, batches: Vec::new(), max_fail: None, rollback_succeeded: false };

    /// The batches of these nodes. Nothing where the nodes are not staged at all.
    pub(crate) fn stages(&self, verb: Verb, nodes: &[NodePlan]) -> Option<Stages> {
        if *self == Self::ALL || verb != Verb::Config {
            return None;
        }
        let worked_on = nodes.iter().enumerate().filter(|(_, node)| !node.is_noop());
        let places: Vec<usize> = worked_on.map(|(place, _)| place).collect();
        Some(Stages {
            strategy: self.strategy,
            max_fail: self.max_fail.unwrap_or(0),
            rollback_succeeded: self.rollback_succeeded,
            batches: self.cut(&places),
        })
    }

    /// Nodes come after everything that they need, so a cut in that order leaves nobody waiting for a later batch.
    fn cut(&self, places: &[usize]) -> Vec<Vec<usize>> {
        let canary = [Share::Nodes(1), Share::Percent(10), Share::Percent(100)];
        let shares: &[Share] = match self.strategy {
            _ if !self.batches.is_empty() => &self.batches,
            Strategy::Serial => return places.iter().map(|place| Vec::from([*place])).collect(),
            Strategy::Canary => &canary,
            Strategy::All => &[],
        };
        let mut batches = Vec::new();
        let mut begun = 0;
        for end in shares.iter().map(|share| share.of(places.len())).chain([places.len()]) {
            if end > begun {
                batches.push(places[begun..end].to_vec());
                begun = end;
            }
        }
        batches
    }
}

/// Which node is in which batch, and what a failure means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// What was asked for.
    pub strategy: Strategy,
    /// How many nodes may fail before nothing new is begun.
    pub max_fail: usize,
    /// Whether nodes that were moved to a new system are taken back where more than that failed.
    pub rollback_succeeded: bool,
    /// The nodes of each batch, by their place in the plan. A node to which nothing is done is in none.
    pub batches: Vec<Vec<usize>>,
}
