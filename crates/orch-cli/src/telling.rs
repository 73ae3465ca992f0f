//! Who else is told of a run: the page that is written beside the answer.

use std::fs;
use std::path::Path;

use crate::args::Telling;
use crate::failure::Failure;

impl Telling {
    /// Writes the page, where one is asked for.
    pub(crate) fn write_page(&self, html: impl FnOnce() -> String) -> Result<(), Failure> {
        self.report.as_deref().map_or(Ok(()), |path| write_page(path, &html()))
    }
}

/// Writes a page to a file.
pub(crate) fn write_page(path: &Path, html: &str) -> Result<(), Failure> {
    fs::write(path, html).map_err(|source| Failure::Unwritten { path: path.to_owned(), source })
}
