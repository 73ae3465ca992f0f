//! What a task that succeeded hands back: whether it changed something, a value, and a result per host.
//!
//! Failure is not here: a task that failed returns a [`TaskError`](crate::TaskError).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Results per host, by the host's name. The engine only compares them; what a host is, is the caller's matter.
pub type Hosts = BTreeMap<String, HostStatus>;

/// What became of one host within one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostStatus {
    /// Something was changed there.
    Changed,
    /// All was already as asked.
    Unchanged,
    /// It was left out.
    Skipped,
    /// It went wrong there.
    Failed,
}

impl fmt::Display for HostStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        })
    }
}

/// What a task that succeeded hands back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome<T = ()> {
    /// Whether the task changed anything; what `only_if_changed` of its dependents looks at.
    pub changed: bool,
    /// What later tasks and the caller may read.
    pub value: T,
    /// What became of each host, where the task worked on several.
    pub hosts: Hosts,
}

impl Outcome {
    /// The task changed something.
    pub fn changed() -> Self {
        Self::new(true)
    }

    /// The task found everything as it should be.
    pub fn unchanged() -> Self {
        Self::new(false)
    }

    fn new(changed: bool) -> Self {
        Self { changed, value: (), hosts: Hosts::new() }
    }
}

impl<T> Outcome<T> {
    /// The same outcome, with `value` in place of the old one.
    pub fn with<U>(self, value: U) -> Outcome<U> {
        Outcome { changed: self.changed, value, hosts: self.hosts }
    }

    /// Notes what became of one host. Does not alter `changed`.
    pub fn host(mut self, name: impl Into<String>, status: HostStatus) -> Self {
        self.hosts.insert(name.into(), status);
        self
    }
}
