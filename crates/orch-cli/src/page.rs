//! The page that a run is written to, beside the answer.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use orch_run::ExitCode;

use crate::failure::Failure;
use crate::output;

/// A page that is asked for, or none. Its file is opened before anything is touched, and holds what it held until then.
pub(crate) struct Page(Option<(PathBuf, File)>);

impl Page {
    /// Opens the file of a page, where one is asked for.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let open = |path: &Path| {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let file = file.map_err(|source| Failure::Unusable { path: path.to_owned(), source })?;
            Ok((path.to_owned(), file))
        };
        path.map(open).transpose().map(Self)
    }

    /// Writes the page, and gives the exit code of the command: the one it would have, unless the page was lost. The
    /// answer has been given by then, so a loss is told on standard error only.
    pub(crate) fn write(self, html: impl FnOnce() -> String, code: ExitCode) -> ExitCode {
        let Some((path, file)) = self.0 else {
            return code;
        };
        match replace(file, &html()) {
            Ok(()) => code,
            Err(source) => {
                output::note(&format!("error: {}", Failure::Unwritten { path, source }.chain()));
                if code == ExitCode::Done { ExitCode::Failed } else { code }
            }
        }
    }
}

fn replace(mut file: File, text: &str) -> io::Result<()> {
    // A terminal or a pipe has no length, and takes the text all the same.
    let _ = file.set_len(0);
    file.write_all(text.as_bytes())
}
