//! What a token says.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::id::TokenId;
use crate::identity::Identity;
use crate::word::{KeyName, SpecName};

/// What a token says. The names are short because they travel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The version of the format: 1.
    pub v: u32,
    /// The node that it is for.
    pub n: Identity,
    /// The spec that the node was to become when it was minted.
    pub s: SpecName,
    /// When it was minted, in seconds since 1970.
    pub iat: u64,
    /// What it opens. Tokens of the old kind do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aud: Option<Audience>,
    /// When it ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<u64>,
    /// Which one it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<TokenId>,
    /// The key that signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kid: Option<KeyName>,
}

impl Claims {
    /// A token of the old kind, which says neither what it opens nor when it ends.
    pub const fn is_legacy(&self) -> bool {
        self.aud.is_none() && self.exp.is_none() && self.jti.is_none()
    }
}

/// What a token opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// The node's configuration.
    Spec,
    /// Saying what became of it.
    Report,
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spec => "spec",
            Self::Report => "report",
        })
    }
}
