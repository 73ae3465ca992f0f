//! Earlier runs, from their journals.

use std::fs;
use std::io;

use crate::journal::{JournalFileError, RunId, RunJournal, wishes_beside};
use crate::report::Report;
use crate::state_dir::StateDir;
use crate::wish::{self, Wish, WishError};

/// A run in a list.
#[derive(Debug)]
pub struct RunSummary {
    /// Its name.
    pub run: RunId,
    /// What became of it, or why its journal cannot be read.
    pub report: Result<Report, JournalFileError>,
}

/// The runs that a state directory knows.
#[derive(Debug, Clone)]
pub struct Runs {
    state: StateDir,
}

impl Runs {
    /// The runs of this state directory.
    pub const fn of(state: StateDir) -> Self {
        Self { state }
    }

    /// The newest runs, newest first.
    pub fn newest(&self, limit: usize) -> io::Result<Vec<RunSummary>> {
        let folder = match fs::read_dir(self.state.runs()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            folder => folder?,
        };
        let stem = |entry: io::Result<fs::DirEntry>| {
            entry.ok()?.file_name().to_str()?.strip_suffix(".jsonl")?.parse::<RunId>().ok()
        };
        let mut runs: Vec<RunId> = folder.filter_map(stem).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs.truncate(limit);
        Ok(runs.into_iter().map(|run| RunSummary { report: self.show(&run), run }).collect())
    }

    /// Tells whoever carries a run out what is wanted of it. It is heeded soon, and not at once.
    pub fn wish(&self, run: &RunId, wish: Wish) -> Result<(), WishError> {
        let report = self.show(run)?;
        wish::say(&wishes_beside(&self.state.runs().join(run.file_name())), &report, wish)
    }

    /// What became of a run.
    pub fn show(&self, run: &RunId) -> Result<Report, JournalFileError> {
        let entries = RunJournal::read(&self.state, run)?;
        // Nothing is done before the first line is written.
        Report::of(&entries).ok_or_else(|| JournalFileError::Empty(run.clone()))
    }
}
