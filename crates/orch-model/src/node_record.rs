//! What a server knows of a node that fetches its configuration: how the driver and people see it.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::delivery::NodeKeys;
use crate::digest::Digest;
use crate::identity::Identity;
use crate::pull::NodeResult;
use crate::token::TokenId;

/// What a server knows of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The node.
    pub node: Identity,
    /// What the site wants it to be; nothing where the site has no spec for it.
    pub wanted: Option<Digest>,
    /// When it last asked for its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched: Option<Fetched>,
    /// When it was last sent away with a token that had been good, since it last fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// What it last said became of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// By what it is known, as it said when it first asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<NodeKeys>,
    /// What it said it is doing, since it last fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// A token that was used up was shown in its name: two have it, and one of them is not the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<Alarm>,
    /// Why the server holds on to what the site said before, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Which server this is: another one after each start.
    #[serde(default)]
    pub server: u64,
    /// The folder of the site that it serves.
    #[serde(default)]
    pub site: String,
    /// Changes with everything that happens to the node at the server.
    pub events: u64,
}

impl NodeRecord {
    /// How many results it has given.
    pub fn results(&self) -> u64 {
        self.reported.as_ref().map_or(0, |reported| reported.number.saturating_add(1))
    }
}

/// A node asked for its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// When, in seconds since 1970.
    pub at: u64,
    /// What it was given; nothing where that is not remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// A node was sent away with a token that had been good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The code that it was told.
    pub code: String,
}

/// What a node reported, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// When it arrived, in seconds since 1970, by the server's clock.
    pub at: u64,
    /// How far the node's clock was ahead, in seconds.
    pub skew: i64,
    /// How many came before it.
    #[serde(default)]
    pub number: u64,
    /// What it said.
    #[serde(flatten)]
    pub result: NodeResult,
}

/// A token that was used up was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// Which one.
    pub id: TokenId,
    /// When, in seconds since 1970.
    pub at: u64,
}
