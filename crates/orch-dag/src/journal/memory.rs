//! A journal that lives as long as the process: for tests, and to resume a stopped run within one program.

use std::sync::{Mutex, PoisonError};

use super::{Entry, Journal, JournalError};
use crate::BoxFuture;

/// A journal in memory. Shared in an `Arc`, so that it can be read after the run.
#[derive(Debug)]
pub struct MemoryJournal<T = ()> {
    entries: Mutex<Vec<Entry<T>>>,
}

impl<T> MemoryJournal<T> {
    /// An empty journal.
    pub fn new() -> Self {
        Self { entries: Mutex::new(Vec::new()) }
    }

    /// What was written so far.
    pub fn entries(&self) -> Vec<Entry<T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> Default for MemoryJournal<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync> Journal<T> for MemoryJournal<T> {
    fn write<'a>(&'a self, entry: &'a Entry<T>) -> BoxFuture<'a, Result<(), JournalError>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
        Box::pin(std::future::ready(Ok(())))
    }
}
