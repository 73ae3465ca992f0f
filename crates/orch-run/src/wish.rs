//! What somebody wants of a run that is under way: said in a file beside its journal, and heeded by whoever runs it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::caller;
use crate::journal::{JournalFileError, RunId};
use crate::report::{Report, RunState};

/// No wish is longer.
const LONGEST: u64 = 4096;

/// What is wanted of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wish {
    /// Begin nothing new for now.
    Pause,
    /// Go on.
    Resume,
    /// Begin nothing new, and end.
    Abort,
}

/// A wish, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wished {
    pub(crate) wish: Wish,
    pub(crate) by: String,
    pub(crate) at: Timestamp,
}

/// A wish could not be told to its run.
#[derive(Debug, Error)]
pub enum WishError {
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// It came to its end.
    #[error("run `{0}` is over")]
    Over(RunId),
    /// Whoever ran it is gone.
    #[error("run `{0}` was killed, and nobody is there to be told")]
    Killed(RunId),
    /// The file cannot be written.
    #[error("`{path}` cannot be written")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl WishError {
    /// What to try next.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Journal(_) | Self::Over(_) => "`orch runs list` shows the runs",
            Self::Killed(_) => "run the same command again: it goes on from what is there",
            Self::File { .. } => "see whether the state directory can be written and has room",
        }
    }
}

/// Says in `file` what is wanted of a run.
pub(crate) fn say(file: &Path, report: &Report, wish: Wish) -> Result<(), WishError> {
    match report.state {
        RunState::Running => {}
        RunState::Finished => return Err(WishError::Over(report.run.clone())),
        RunState::Killed => return Err(WishError::Killed(report.run.clone())),
    }
    let wished = Wished { wish, by: caller::name(), at: Timestamp::now() };
    let draft = file.with_extension(format!("wish-{}", std::process::id()));
    let written = write(&draft, &wished).and_then(|()| fs::rename(&draft, file));
    written.map_err(|source| WishError::File { path: file.to_owned(), source })
}

fn write(draft: &Path, wished: &Wished) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft)?;
    file.write_all(&serde_json::to_vec(wished)?)
}

/// The wish in a file. Whatever else is there is no wish: nothing, another's text, a folder, a pipe that nobody writes to.
pub(crate) fn read(file: &Path) -> Option<Wished> {
    // Whoever opens a pipe waits for its other end, unless it says that it does not want to.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(file).ok()?;
    let is_file = File::metadata(&file).is_ok_and(|about| about.is_file());
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok().filter(|_| is_file)?;
    let wished: Wished = serde_json::from_slice(&bytes).ok()?;
    Some(Wished { by: orch_model::printable(&wished.by).into_owned(), ..wished })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_lies_where_a_wish_should_is_no_wish_unless_it_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.wish");
        assert_eq!(read(&path), None, "nothing is there");
        let odd: [&[u8]; 6] = [
            b"",
            b"{",
            b"null",
            b"{\"wish\":\"explode\",\"by\":\"x\",\"at\":\"2026-01-07T10:30:00Z\"}",
            &[0xff; 9000],
            b"[]",
        ];
        for bytes in odd {
            fs::write(&path, bytes).expect("it can be written");
            assert_eq!(read(&path), None);
        }
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("it can be made");
        assert_eq!(read(&path), None, "a folder");
        fs::remove_dir(&path).expect("it is empty");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a pipe can be made");
        assert_eq!(read(&path), None, "a pipe that nobody writes to");
        fs::remove_file(&path).expect("it is there");
        let elsewhere = folder.path().join("elsewhere");
        let wished = Wished { wish: Wish::Pause, by: "\u{1b}[2Jme".into(), at: Timestamp::now() };
        write(&elsewhere, &wished).expect("it can be written");
        std::os::unix::fs::symlink(&elsewhere, &path).expect("a link can be made");
        assert_eq!(read(&path), None, "a link");
        let heard = read(&elsewhere).expect("a wish");
        assert_eq!((heard.wish, heard.by.as_str()), (Wish::Pause, "\u{fffd}[2Jme"));
    }
}
