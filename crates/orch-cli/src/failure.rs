//! Why a command could not answer. Printed in one place, and mapped to exit codes in one place.

use std::error::Error;
use std::path::PathBuf;

use orch_model::Problems;
use orch_run::load::LoadError;
use orch_run::{ExitCode, JournalFileError, StateDirError};
use thiserror::Error;

/// Why a command could not answer.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The site, or the request, is wrong; nothing was touched.
    #[error("{0}")]
    Problems(Problems),
    /// The site cannot be found or listed.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no place for journals.
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// There are no runs yet.
    #[error("there are no runs yet")]
    NoRuns,
    /// A recorded state cannot be understood.
    #[error("the recorded state `{path}` cannot be understood")]
    Observed {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// A file cannot be read.
    #[error("`{path}` cannot be read")]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("`{path}` cannot be written")]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A new site would overwrite something.
    #[error("`{0}` exists already, and nothing is overwritten")]
    Exists(PathBuf),
    /// There is no such kind of site file.
    #[error("`{0}` is not a kind of site file")]
    UnknownKind(String),
}

impl Failure {
    /// What to try next.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Load(error) => Some(error.hint().into()),
            Self::StateDir(error) => Some(error.hint().into()),
            Self::Journal(JournalFileError::Unknown(_)) => Some("`orch runs list` shows the runs".into()),
            Self::Exists(_) => Some("name a folder that is empty or does not exist".into()),
            Self::UnknownKind(_) => Some("choose from site, host, manifest, spec, preset and posture".into()),
            Self::Observed { .. } => {
                Some("docs/observed.md in the repository of orch says what belongs in it".into())
            }
            Self::Problems(_)
            | Self::Journal(_)
            | Self::NoRuns
            | Self::Unread { .. }
            | Self::Unwritten { .. } => None,
        }
    }

    /// The exit code: nothing was touched, whatever it was.
    pub(crate) const fn exit_code(&self) -> ExitCode {
        match self {
            Self::NoRuns | Self::Journal(_) | Self::Unwritten { .. } => ExitCode::Failed,
            _ => ExitCode::Invalid,
        }
    }

    /// The failure and its causes, in one line.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Problems(problems)
    }
}
