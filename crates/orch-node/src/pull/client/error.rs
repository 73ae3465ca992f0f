//! Why a question to the server has no answer, and whether asking again may help.

use std::io;
use std::time::Duration;

use orch_model::printable;
use orch_model::pull::ErrorAnswer;
use thiserror::Error;

use super::http::{Answer, HttpError};
use super::stream::Told;

/// No more of what a server says of an error is told on.
const LONGEST_MESSAGE: usize = 400;

/// Why a question to the server has no answer.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// There is no way to it, or it hung up.
    #[error("the server cannot be reached")]
    Unreachable(#[source] io::Error),
    /// It took too long.
    #[error("the server did not answer in time")]
    Late,
    /// It cannot be spoken with in secret.
    #[error("the connection to the server cannot be secured")]
    Tls(#[source] rustls::Error),
    /// It is somebody else.
    #[error("the server shows another certificate than the pinned ones")]
    OtherCertificate,
    /// It answered that it will not.
    #[error("{words}")]
    Status {
        /// As HTTP says it.
        status: u16,
        /// The code and the words of the server.
        words: String,
        /// When it wants to be asked again, where it says so.
        retry_after: Option<Duration>,
    },
    /// It answered something that is no answer.
    #[error("the server's answer is not believed: {0}")]
    Nonsense(String),
    /// This process was told to stop, or to look again.
    #[error("it was told to stop")]
    Told,
}

impl CallError {
    /// Whether asking again may help: nobody was heard, or who was heard has no time.
    pub(crate) const fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Late | Self::Tls(_) | Self::OtherCertificate => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::Nonsense(_) | Self::Told => false,
        }
    }

    /// The status that was answered, where one was.
    pub(crate) const fn status(&self) -> Option<u16> {
        if let Self::Status { status, .. } = self { Some(*status) } else { None }
    }

    pub(super) fn io(error: io::Error) -> Self {
        let inner = error.get_ref();
        if inner.and_then(|inner| inner.downcast_ref::<Told>()).is_some() {
            return Self::Told;
        }
        let other = rustls::Error::from(rustls::CertificateError::ApplicationVerificationFailure);
        match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) if *error == other => Self::OtherCertificate,
            Some(error) => Self::Tls(error.clone()),
            None if error.kind() == io::ErrorKind::TimedOut => Self::Late,
            None => Self::Unreachable(error),
        }
    }

    pub(super) fn http(error: HttpError) -> Self {
        match error {
            HttpError::Io { error, .. } => Self::io(error),
            HttpError::Nonsense(why) => Self::Nonsense(why.into()),
        }
    }

    pub(super) fn refused(answer: &Answer) -> Self {
        let status = answer.status;
        let words = serde_json::from_slice::<ErrorAnswer>(&answer.body).map_or_else(
            |_| format!("the server answered with the status {status}"),
            |ErrorAnswer { error }| {
                let words = format!("{}: {}", error.code, error.message);
                printable(&words).chars().take(LONGEST_MESSAGE).collect()
            },
        );
        Self::Status { status, words, retry_after: answer.retry_after }
    }
}
