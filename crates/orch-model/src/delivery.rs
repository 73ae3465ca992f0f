//! What a driver or a server brings to a node beside its configuration, and what the node says of itself.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::word::{AgeRecipient, KeyName, PublicKey};

/// Secrets for one node, encrypted to its own key: an age file in base64. Nobody else can do anything with it, so it may
/// lie on a disk.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parcel(String);

impl Parcel {
    /// A parcel, from the base64 of an age file.
    pub const fn new(base64: String) -> Self {
        Self(base64)
    }

    /// The base64 of an age file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::fmt::Debug for Parcel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Parcel({} characters)", self.0.len())
    }
}

/// What a driver brings to a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// What the node becomes.
    pub config: Config,
    /// The secrets that it said it lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parcel: Option<Parcel>,
}

/// By what a node is known, and what can be encrypted to it: the public halves of keys that it made itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeKeys {
    /// To whom its secrets are encrypted.
    pub age: AgeRecipient,
    /// Its own SSH host key, where it has an SSH server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_key: Option<PublicKey>,
    /// Whether its SSH server shows its own key, and the one that it was given to be known by at first is gone.
    #[serde(default)]
    pub settled: bool,
}

/// What a node says that cannot become what it should for want of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacking {
    /// The secrets that it does not have, by name.
    pub lacking: Vec<KeyName>,
}
