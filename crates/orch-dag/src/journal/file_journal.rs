//! The journal of a run in a file, on top of [`Lines`].

use std::marker::PhantomData;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::file::{Lines, LinesError};
use super::{Entry, Journal, JournalError, Resume};
use crate::BoxFuture;

/// The journal of a run in a file; what it has acknowledged survives a crash of the machine.
#[derive(Debug)]
pub struct FileJournal<T = ()> {
    lines: Lines,
    entries: PhantomData<fn(T)>,
}

impl<T: Serialize + DeserializeOwned> FileJournal<T> {
    /// Begins a journal. There must be no such file.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, LinesError> {
        Ok(Self::on(Lines::create(path)?))
    }

    /// Continues a journal, or begins it if there is none; what it tells is given to the
    /// [`Runner`](crate::Runner::resume) together with it.
    pub fn resume(path: impl AsRef<Path>) -> Result<(Self, Resume<T>), LinesError> {
        // Opened first: then it is locked, and no other writer can come between.
        let lines = Lines::append_to(&path)?;
        let entries = Lines::read::<Entry<T>>(&path)?.entries;
        Ok((Self::on(lines), Resume::new(entries)))
    }

    fn on(lines: Lines) -> Self {
        Self { lines, entries: PhantomData }
    }
}

impl<T: Serialize + Send + Sync> Journal<T> for FileJournal<T> {
    fn write<'a>(&'a self, entry: &'a Entry<T>) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move { self.lines.append(entry).await.map_err(JournalError::new) })
    }
}
