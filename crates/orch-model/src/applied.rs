//! What a node says of itself: what became of its configuration, what differs from it now, and whether it is healthy.
//!
//! One shape in all modes: a node keeps it in `/var/lib/orch`, prints it to the driver that pushes, and posts it to the
//! server that it pulls from.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::digest::Digest;
use crate::files::Mode;
use crate::identity::Identity;
use crate::word::SpecName;

/// What became of applying a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyReport {
    /// Always `config`: the phase of a node's life that this is about.
    pub phase: String,
    /// How it ended.
    pub status: ApplyStatus,
    /// The node.
    pub node: Identity,
    /// The spec that it becomes.
    pub spec: SpecName,
    /// The digest of the configuration.
    pub spec_digest: Digest,
    /// Who brought the configuration.
    pub mode: Mode,
    /// When it began, in RFC 3339.
    pub started_at: String,
    /// When it ended, in RFC 3339.
    pub finished_at: String,
    /// How often this configuration was tried, this time included.
    pub attempts: u32,
    /// Every resource, in the order in which they were looked at.
    pub resources: Vec<ResourceReport>,
    /// Every health check, where the configuration has any and everything else succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<HealthReport>,
    /// Why it failed, where it did.
    pub error: Option<String>,
}

impl ApplyReport {
    /// Whether something on the node was changed.
    pub fn changed(&self) -> bool {
        self.resources.iter().any(|resource| resource.changed)
    }

    /// Whether it is about this configuration, and made it true.
    pub fn completes(&self, config: &Config) -> bool {
        self.status == ApplyStatus::Complete && self.spec_digest == config.digest()
    }
}

/// How applying a configuration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApplyStatus {
    /// Everything is as the configuration says, but for what was skipped with its reason, and the node is healthy.
    Complete,
    /// Something is not.
    Failed,
}

/// One thing that a configuration asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceReport {
    /// What kind of thing: `hostname`, `user`, `file`, `package`, …
    pub kind: String,
    /// Which one.
    pub name: String,
    /// Whether it was changed; when only looked at, whether it differs.
    pub changed: bool,
    /// Why it is neither done nor amiss, where it cannot be had on this kind of node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// What differs, or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What a node is, next to what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// The configuration that it last made true, where there is one.
    pub applied: Option<Digest>,
    /// Every resource; one that is `changed` has drifted.
    pub resources: Vec<ResourceReport>,
    /// Every health check.
    pub health: Vec<HealthReport>,
}

impl Inspection {
    /// The resources that differ from the configuration.
    pub fn drift(&self) -> impl Iterator<Item = &ResourceReport> {
        self.resources.iter().filter(|resource| resource.changed)
    }

    /// Whether every health check passes.
    pub fn is_healthy(&self) -> bool {
        self.health.iter().all(|check| check.healthy)
    }
}

/// How a health check went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthReport {
    /// The check, in words: `tcp 22`.
    pub check: String,
    /// Whether it passes.
    pub healthy: bool,
    /// What was seen instead, where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl fmt::Display for HealthReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => write!(f, "{}: {why}", self.check),
            None => f.write_str(&self.check),
        }
    }
}
