//! How one task ended, with all that is known of it: the one record that later tasks, guards, hooks, the journal and
//! the [`Report`](crate::Report) read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::outcome::Hosts;
use crate::seconds;
use crate::status::{Failure, Status};

/// How one task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct TaskReport<T = ()> {
    /// The task's name.
    pub name: Arc<str>,
    /// How it ended.
    pub status: Status,
    /// How often it was tried; none if it was skipped.
    pub attempts: u32,
    /// When its first attempt began, counted from the beginning of the run in which it ended.
    #[serde(with = "seconds::option", default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Duration>,
    /// How long it took, with all attempts and the waits between them.
    #[serde(with = "seconds")]
    pub duration: Duration,
    /// What became of each host, if the task said so.
    #[serde(default, skip_serializing_if = "Hosts::is_empty")]
    pub hosts: Hosts,
    /// What it returned, if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<T>,
}

/// Reads a value that is there. A plain `Option` would take a stored `null`, which is what `()` is, for no value.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<T> TaskReport<T> {
    /// A record of a task that was not run, or not to its end.
    pub(crate) fn unrun(name: Arc<str>, status: Status) -> Self {
        let hosts = Hosts::new();
        Self { name, status, attempts: 0, started: None, duration: Duration::ZERO, hosts, value: None }
    }

    /// Whether the task succeeded and changed something.
    pub fn is_changed(&self) -> bool {
        self.status == Status::Changed
    }

    /// The failed task behind this one's end: itself, or the one because of which it was skipped.
    ///
    /// A cancelled task is nobody's reason, for it says nothing about the task.
    pub fn culprit(&self) -> Option<&Arc<str>> {
        use crate::status::SkipReason::DependencyFailed;
        match &self.status {
            Status::Failed(Failure::Cancelled) => None,
            Status::Failed(_) => Some(&self.name),
            Status::Skipped(DependencyFailed { task }) => Some(task),
            _ => None,
        }
    }
}

impl<T> fmt::Display for TaskReport<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.status)?;
        if self.attempts > 1 {
            write!(f, " ({} attempts)", self.attempts)?;
        }
        self.hosts.iter().try_for_each(|(host, status)| write!(f, "\n  {host}: {status}"))
    }
}
