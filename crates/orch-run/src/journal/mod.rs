//! What a run wrote down: its plan, then each intent before its effect and each end after it.
//!
//! One append-only file per run. A line that reached the file survived a crash; a torn last line is passed over.
//! The report of a run is made from this alone, so that what is told at the end and what is told afterwards are one.

mod entry;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
#[cfg(feature = "memory")]
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use orch_dag::BoxFuture;
use orch_dag::journal::file::{Lines, LinesError};
use orch_dag::journal::{Journal, JournalError};
use orch_plan::Plan;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::lock::start_of;
use crate::state_dir::{StateDir, StateDirError};
pub use entry::{Entry, Ill, StepValue};

/// The name of a run: when it began, to the second, and four hexadecimal digits that divide the second. So the order of
/// names is the order of runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A name for a run that begins now.
    pub fn new() -> Self {
        let now = Timestamp::now();
        let share = i64::from(now.subsec_nanosecond()) * 0x1_0000 / 1_000_000_000;
        Self(format!("{}-{share:04x}", now.strftime("%Y%m%d-%H%M%S")))
    }

    /// The name after it, for a run whose name another one took that began at the very same moment.
    fn next(&self) -> Self {
        let (second, share) = self.0.rsplit_once('-').unwrap_or((&self.0, ""));
        let share = u32::from_str_radix(share, 16).unwrap_or_default().saturating_add(1);
        Self(format!("{second}-{share:04x}"))
    }

    pub(crate) fn file_name(&self) -> String {
        format!("{}.jsonl", self.0)
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fit = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase() || byte == b'-';
        if text.is_empty() || text.len() > 40 || !text.bytes().all(fit) {
            return Err("a run is named like `20260107-103000-3f9a`; `orch runs list` shows them".into());
        }
        Ok(Self(text.into()))
    }
}

/// A journal cannot be written or read.
#[derive(Debug, Error)]
pub enum JournalFileError {
    /// There is no folder for journals.
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    /// The file cannot be used.
    #[error("the journal `{path}` cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: LinesError,
    },
    /// There is no journal of that name.
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    /// The run ended before its plan was written, and so did nothing.
    #[error("run `{0}` ended before it wrote anything down, and did nothing")]
    Empty(RunId),
}

/// The journal of a run that is under way.
pub struct RunJournal {
    run: RunId,
    path: PathBuf,
    lines: Lines,
    entries: Mutex<Vec<Entry>>,
    /// How many entries are on disk, and who is told when one more is: a test ends the process here.
    #[cfg(feature = "memory")]
    written: AtomicUsize,
    #[cfg(feature = "memory")]
    after_entry: Box<dyn Fn(usize) + Send + Sync>,
}

impl RunJournal {
    /// Begins the journal of a run: the first line is the plan. Where its name is taken it has the next one that is not.
    pub async fn begin(state: &StateDir, run: RunId, plan: &Plan) -> Result<Self, JournalFileError> {
        let runs = state.make_runs()?;
        let mut run = run;
        let (path, lines) = loop {
            let path = runs.join(run.file_name());
            match Lines::create(&path) {
                Ok(lines) => break (path, lines),
                Err(LinesError::Open { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                    run = run.next();
                }
                Err(source) => return Err(JournalFileError::File { path, source }),
            }
        };
        let journal = Self {
            run: run.clone(),
            path,
            lines,
            entries: Mutex::default(),
            #[cfg(feature = "memory")]
            written: AtomicUsize::new(0),
            #[cfg(feature = "memory")]
            after_entry: Box::new(|_| {}),
        };
        let pid = std::process::id();
        let begun = Entry::Begun {
            at: Timestamp::now(),
            run,
            pid,
            started: start_of(pid).unwrap_or_default(),
            plan: Box::new(plan.clone()),
        };
        journal.append(begun).await?;
        Ok(journal)
    }

    /// Has `after_entry` called whenever an entry has reached the disk, with how many have.
    #[cfg(feature = "memory")]
    pub fn when_written(mut self, after_entry: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.after_entry = Box::new(after_entry);
        self
    }

    /// Where those who do not run it say what they want of the run.
    pub(crate) fn wishes(&self) -> PathBuf {
        wishes_beside(&self.path)
    }

    /// The name of the run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Writes one entry; when this returns well, it is on disk. What happened is remembered for the report even where
    /// it could not be written.
    pub async fn append(&self, entry: Entry) -> Result<(), JournalFileError> {
        // Before it is waited for: a step that is cut off meanwhile forgets to wait, and the line is on disk all the same.
        self.entries.lock().expect("nobody panics while holding this").push(entry.clone());
        let written = self.lines.append(&entry).await;
        #[cfg(feature = "memory")]
        if written.is_ok() {
            (self.after_entry)(self.written.fetch_add(1, Ordering::SeqCst) + 1);
        }
        written.map_err(|source| JournalFileError::File { path: self.path.clone(), source })
    }

    /// Everything written so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().expect("nobody panics while holding this").clone()
    }

    /// Reads the journal of an earlier run; a torn last line is passed over.
    pub fn read(state: &StateDir, run: &RunId) -> Result<Vec<Entry>, JournalFileError> {
        let path = state.runs().join(run.file_name());
        if !path.exists() {
            return Err(JournalFileError::Unknown(run.clone()));
        }
        Self::read_file(&path)
    }

    pub(crate) fn read_file(path: &Path) -> Result<Vec<Entry>, JournalFileError> {
        let contents =
            Lines::read(path).map_err(|source| JournalFileError::File { path: path.to_owned(), source })?;
        Ok(contents.entries)
    }
}

/// The file beside a journal in which somebody says what they want of the run.
pub(crate) fn wishes_beside(journal: &Path) -> PathBuf {
    journal.with_extension("wish")
}

/// The engine writes its steps through this: the intent before the effect, the end after it.
impl Journal<StepValue> for RunJournal {
    fn write<'a>(&'a self, entry: &'a orch_dag::Entry<StepValue>) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let step = Entry::Step { at: Timestamp::now(), entry: entry.clone() };
            self.append(step).await.map_err(JournalError::new)
        })
    }
}
