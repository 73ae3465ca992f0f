//! What was started and what ended, written down so that another run can continue.
//!
//! The engine writes and never reads: reading back is [`Resume`], given to a later run.

use std::error::Error;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::BoxFuture;
use crate::task_report::TaskReport;

pub mod file;
mod file_journal;
mod memory;
mod resume;

pub use file_journal::FileJournal;
pub use memory::MemoryJournal;
pub use resume::Resume;

/// One thing that happened.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", bound(deserialize = "T: Deserialize<'de>"))]
pub enum Entry<T = ()> {
    /// An attempt of a task is about to be made.
    Started {
        /// The task's name.
        task: Arc<str>,
        /// Which attempt; the first is 1.
        attempt: u32,
    },
    /// A task succeeded, failed for good, or was skipped by a decision about it.
    ///
    /// What the end of the run cut short or kept from starting has no such entry.
    Ended(Arc<TaskReport<T>>),
}

impl<T> Entry<T> {
    /// The name of the task that the entry is about.
    pub fn task(&self) -> &Arc<str> {
        match self {
            Self::Started { task, .. } => task,
            Self::Ended(report) => &report.name,
        }
    }
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Started { task, attempt } => Self::Started { task: Arc::clone(task), attempt: *attempt },
            Self::Ended(report) => Self::Ended(Arc::clone(report)),
        }
    }
}

/// Where a run writes down what happens.
pub trait Journal<T = ()>: Send + Sync {
    /// Writes one entry. When this returns, the entry must survive whatever the journal promises to survive.
    ///
    /// Called by many workers at once. After an error the engine starts nothing new.
    fn write<'a>(&'a self, entry: &'a Entry<T>) -> BoxFuture<'a, Result<(), JournalError>>;
}

impl<T, J: Journal<T> + ?Sized> Journal<T> for Arc<J> {
    fn write<'a>(&'a self, entry: &'a Entry<T>) -> BoxFuture<'a, Result<(), JournalError>> {
        (**self).write(entry)
    }
}

/// An entry could not be written.
#[derive(Debug, Error)]
#[error("the journal could not be written")]
pub struct JournalError {
    source: Box<dyn Error + Send + Sync>,
}

impl JournalError {
    /// Wraps the reason.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: source.into() }
    }
}
