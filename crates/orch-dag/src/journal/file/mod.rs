//! A durable file of JSON lines, to which entries of any type are appended.
//!
//! An entry is acknowledged when it is on the disk; entries that wait at the same time share one write and one flush.
//! A crash can leave the last line torn: that one was never acknowledged, so readers pass over it and the next writer
//! cuts it off. Damage anywhere else is an error. Nothing is ever rewritten, and files are not rotated.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

mod crc;
mod line;
mod writer;

use writer::Writer;

/// A file of JSON lines, open for appending, locked against other writers. Dropping it waits until all is written.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    writer: Writer,
}

/// What was read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents<E> {
    /// The entries, in the order in which they were appended.
    pub entries: Vec<E>,
    /// Whether a torn last line was passed over.
    pub torn: bool,
}

/// What can go wrong with a file of lines.
#[derive(Debug, Error)]
pub enum LinesError {
    /// The file could not be opened, read or made.
    #[error("cannot open `{}`", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another writer has the file.
    #[error("`{}` is being written by another process", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A line that is not the last one is damaged.
    #[error("line {line} of `{}` is damaged", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line's number; the first is 1.
        line: usize,
    },
    /// A whole line holds something else than was asked for.
    #[error("line {line} of `{}` is not such an entry", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// The line's number; the first is 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// The entry cannot be put into JSON.
    #[error("cannot encode an entry for `{}`", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// Writing failed, now or before: after one failure nothing is known of the file's end, so no more is written.
    #[error("cannot write to `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why; shared by all entries that were written at once.
        source: Arc<io::Error>,
    },
}

impl Lines {
    /// Makes the file; there must be none. Blocks until the file is sure to be found after a crash.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, LinesError> {
        let path = path.as_ref();
        Self::open(path, OpenOptions::new().append(true).read(true).create_new(true))
    }

    /// Opens the file, or makes it if there is none, and cuts off a torn last line. Blocks.
    pub fn append_to(path: impl AsRef<Path>) -> Result<Self, LinesError> {
        let path = path.as_ref();
        Self::open(path, OpenOptions::new().append(true).read(true).create(true))
    }

    /// Reads all entries. Blocks; takes no lock.
    pub fn read<E: DeserializeOwned>(path: impl AsRef<Path>) -> Result<Contents<E>, LinesError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(opening(path))?;
        let scan = scan(path, &bytes)?;
        let decode = |(index, body): (usize, &[u8])| {
            serde_json::from_slice(body).map_err(|source| LinesError::Decode {
                path: path.to_owned(),
                line: index + 1,
                source,
            })
        };
        let entries = scan.bodies.into_iter().enumerate().map(decode).collect::<Result<_, _>>()?;
        Ok(Contents { entries, torn: scan.whole < bytes.len() })
    }

    /// Appends one entry and waits until it is on the disk.
    ///
    /// Entries appended at once from several places end up in some order. Dropping the future does not take the entry
    /// back.
    pub async fn append<E: Serialize + ?Sized>(&self, entry: &E) -> Result<(), LinesError> {
        let line =
            line::encode(entry).map_err(|source| LinesError::Encode { path: self.path.clone(), source })?;
        let written = self.writer.write(line).await;
        written.map_err(|source| LinesError::Write { path: self.path.clone(), source })
    }

    fn open(path: &Path, options: &OpenOptions) -> Result<Self, LinesError> {
        let file = options.open(path).map_err(opening(path))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => LinesError::Locked { path: path.to_owned() },
            TryLockError::Error(source) => LinesError::Open { path: path.to_owned(), source },
        })?;
        cut_torn_line(path, &file)?;
        sync_directory(path).map_err(opening(path))?;
        let writer = Writer::start(file).map_err(opening(path))?;
        Ok(Self { path: path.to_owned(), writer })
    }
}

fn opening(path: &Path) -> impl Fn(io::Error) -> LinesError {
    move |source| LinesError::Open { path: path.to_owned(), source }
}

/// The lines that are whole, and how many bytes they take.
struct Scan<'a> {
    bodies: Vec<&'a [u8]>,
    whole: usize,
}

fn scan<'a>(path: &Path, bytes: &'a [u8]) -> Result<Scan<'a>, LinesError> {
    let mut scan = Scan { bodies: Vec::new(), whole: 0 };
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let is_last = scan.whole + line.len() == bytes.len();
        match line::decode(line) {
            Some(body) => scan.bodies.push(body),
            None if is_last => break,
            None => return Err(LinesError::Corrupt { path: path.to_owned(), line: scan.bodies.len() + 1 }),
        }
        scan.whole += line.len();
    }
    Ok(scan)
}

fn cut_torn_line(path: &Path, file: &File) -> Result<(), LinesError> {
    let bytes = fs::read(path).map_err(opening(path))?;
    let whole = scan(path, &bytes)?.whole;
    if whole < bytes.len() {
        file.set_len(whole as u64).and_then(|()| file.sync_all()).map_err(opening(path))?;
    }
    Ok(())
}

/// A new file is found after a crash only if its directory was flushed as well.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
