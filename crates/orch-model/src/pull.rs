//! What a node that fetches its configuration and the server that has it say to each other.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::applied::{ApplyReport, ResourceReport};
use crate::config::Config;
use crate::delivery::Parcel;
use crate::digest::Digest;
use crate::files::Mode;
use crate::identity::Identity;
use crate::token::{Bearer, Code};

/// The port of the spec server, where nothing else is said.
pub const SERVER_PORT: u16 = 44_443;

/// The header in which a node that asks says to whom its secrets are encrypted.
pub const AGE_HEADER: &str = "orch-age";
/// The header in which it says what its own SSH host key is, where it has one.
pub const HOST_KEY_HEADER: &str = "orch-host-key";
/// The header in which it says, with whatever else it asks or tells, whether its SSH server shows that key: `true` or `false`.
pub const SETTLED_HEADER: &str = "orch-settled";
/// The header in which it says which secrets it has, by the first digits of their digests with commas between them.
pub const HOLDS_HEADER: &str = "orch-holds";
/// How many digits of a digest say which secret it is.
pub const HOLDS_DIGITS: usize = 12;
/// How many secrets it says that it has: no more fit into the head of a request. What else it has it is sent again.
pub const MOST_HOLDS: usize = 1000;

/// What a node is given from outside, so that it can fetch its configuration. It holds the one secret that a node is given
/// before it has asked for anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    /// Who the node is.
    pub node: Identity,
    /// Whether it comes by itself, or when it is told to.
    pub mode: Mode,
    /// Where the server is: `https://host:port`.
    pub server: String,
    /// The certificates that the server may show, by the SHA-256 of each.
    pub pins: Vec<Digest>,
    /// What opens its configuration, once.
    pub token: Bearer,
}

/// What the server answers to a node that asks for its configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpecAnswer {
    /// What the node becomes.
    pub spec: Config,
    /// The secrets that it said it does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parcel: Option<Parcel>,
    /// The tokens that it uses from now on.
    pub next: NextTokens,
    /// The certificates that the server shows, now and after it is given a new one.
    pub pins: Vec<Digest>,
    /// Changes whenever there is something new for the node; asked for again by waiting.
    pub revision: u64,
}

/// The tokens that a node uses from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextTokens {
    /// For its configuration.
    pub spec: Bearer,
    /// For saying what became of it.
    pub report: Bearer,
}

/// What the server answers to a node that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitAnswer {
    /// What is to be asked for after the next time; the same as before where nothing is new.
    pub revision: u64,
}

/// What a node tells the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Telling {
    /// What it is doing. Shown to whoever waits, and not kept.
    Progress {
        /// In a few words.
        doing: String,
    },
    /// What became of a configuration.
    Result(Box<NodeResult>),
}

/// What became of a configuration on a node that fetched it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeResult {
    /// The report that the node keeps too.
    pub report: ApplyReport,
    /// What had drifted before it was applied again, where that is why it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<ResourceReport>,
    /// Whether it is told late, because nobody could be told before: what came after it may be told next.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub owed: bool,
    /// What time the node believes it is, in seconds since 1970.
    pub clock: i64,
}

/// What the server answers where it does not answer the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// Why.
    pub error: ErrorWords,
}

/// Why a question is not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorWords {
    /// The code, such as `E301`.
    pub code: String,
    /// The same in words.
    pub message: String,
}

impl ErrorAnswer {
    /// An answer with one of the codes of the table.
    pub fn of(code: Code, message: impl Into<String>) -> Self {
        Self { error: ErrorWords { code: code.as_str().into(), message: message.into() } }
    }
}
