//! Why something on the node could not be looked at or made true.

use std::error::Error;
use std::io;
use std::path::Path;

use thiserror::Error;

/// Why something on the node could not be looked at or made true.
#[derive(Debug, Error)]
pub(crate) enum ApplyError {
    /// The system would not do it.
    #[error("cannot {verb} `{path}`")]
    File {
        /// What was tried, as in `cannot read`.
        verb: &'static str,
        /// On what.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// It could be done, and must not be.
    #[error("`{path}` is left alone: {why}")]
    Refused {
        /// What.
        path: String,
        /// Why it must not.
        why: String,
    },
    /// A program of the node did not do what it was asked.
    #[error("`{program}` {how}{}", quoted(said))]
    Program {
        /// Which one.
        program: String,
        /// How it ended.
        how: String,
        /// The last lines of what it said.
        said: String,
    },
    /// What the configuration asks for cannot be had here.
    #[error("{0}")]
    Impossible(String),
}

impl ApplyError {
    /// Says what was tried on which path when the system refused.
    pub(crate) fn file<E: Into<io::Error>>(
        verb: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self + use<E> {
        let path = path.display().to_string();
        move |source| Self::File { verb, path, source: source.into() }
    }

    /// Says why a path must not be touched.
    pub(crate) fn refused(path: &Path, why: impl Into<String>) -> Self {
        Self::Refused { path: path.display().to_string(), why: why.into() }
    }

    /// The error and its causes in one line.
    pub(crate) fn in_full(&self) -> String {
        in_full(self)
    }
}

/// An error and its causes in one line.
pub(crate) fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn quoted(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}
