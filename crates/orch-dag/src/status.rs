//! How a task ended: changed, unchanged, skipped for a reason, failed in a way.
//!
//! These are words for people and for storage. The live error of a task is not kept, only its text.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seconds;

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It succeeded and changed something.
    Changed,
    /// It succeeded and there was nothing to change.
    Unchanged,
    /// It was not run.
    Skipped(SkipReason),
    /// It ran and did not succeed.
    Failed(Failure),
}

impl Status {
    /// Whether the task ran and succeeded.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Changed | Self::Unchanged)
    }

    /// Whether the task ran and did not succeed.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Whether the task was not run.
    pub fn is_skipped(&self) -> bool {
        matches!(self, Self::Skipped(_))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("changed"),
            Self::Unchanged => f.write_str("unchanged"),
            Self::Skipped(reason) => write!(f, "skipped: {reason}"),
            Self::Failed(failure) => write!(f, "failed: {failure}"),
        }
    }
}

/// Why a task was not run.
///
/// The first three are decisions about the task. The others say that the run ended before the task had its turn;
/// these are never journalled, so that a resumed run gives it one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Something it waits for, directly or not, failed: the failed task, not the skipped one between.
    DependencyFailed {
        /// The task that failed.
        task: Arc<str>,
    },
    /// It asked for a changed dependency and there was none.
    NothingChanged,
    /// A guard did not hold.
    Guard {
        /// The guard, as `explain()` prints it.
        label: String,
    },
    /// Another task failed and its strategy stopped the run.
    StoppedBy {
        /// The task that failed.
        task: Arc<str>,
    },
    /// The caller stopped the run.
    Stopped,
    /// The caller cancelled the run.
    Cancelled,
    /// The journal could not be written, and what cannot be written down is not done.
    JournalFailed,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DependencyFailed { task } => write!(f, "dependency `{task}` failed"),
            Self::NothingChanged => f.write_str("no dependency changed"),
            Self::Guard { label } => write!(f, "guard `{label}` does not hold"),
            Self::StoppedBy { task } => write!(f, "the run stopped when `{task}` failed"),
            Self::Stopped => f.write_str("the run was stopped"),
            Self::Cancelled => f.write_str("the run was cancelled"),
            Self::JournalFailed => f.write_str("the journal could not be written"),
        }
    }
}

/// In which way a task failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// It returned an error.
    Error {
        /// The error's text, then those of its sources.
        chain: Vec<String>,
    },
    /// An attempt took longer than its timeout, or the task said that something it waited for did.
    TimedOut {
        /// How long was waited.
        #[serde(with = "seconds")]
        after: Duration,
        /// What the task said, if it was the task that noticed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        chain: Vec<String>,
    },
    /// It was dropped because the run was cancelled.
    Cancelled,
    /// Its code panicked.
    Panicked {
        /// The panic's message.
        message: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error { chain } => f.write_str(&chain.join(": ")),
            Self::TimedOut { after, chain } => {
                write!(f, "timed out after {after:?}")?;
                chain.iter().try_for_each(|text| write!(f, ": {text}"))
            }
            Self::Cancelled => f.write_str("cancelled"),
            Self::Panicked { message } => write!(f, "panicked: {message}"),
        }
    }
}
