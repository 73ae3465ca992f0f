//! What came of a convergence, and why one cannot even be tried.

use orch_model::{ApplyReport, ApplyStatus};
use thiserror::Error;

use crate::error::ApplyError;

/// What came of a convergence.
#[derive(Debug)]
pub(crate) enum Converged {
    /// The node has its configuration, and this became of it.
    Ended(Box<ApplyReport>),
    /// There was nothing new, and nothing else was asked for.
    Renewed,
    /// There was no configuration to be had, as this says.
    NotFetched(Box<ApplyReport>),
    /// It is not done yet: the time limit was reached, or it was told to stop.
    Left(&'static str),
}

/// Why a node cannot even try to converge.
#[derive(Debug, Error)]
pub(crate) enum PullError {
    #[error("this node was not told to pull: there is no `{}`", super::ENROLMENT)]
    NotEnrolled,
    #[error("{0}")]
    Enrolment(String),
    #[error(transparent)]
    State(#[from] ApplyError),
}

impl Converged {
    /// Whether the node is as it should be.
    pub(crate) fn is_good(&self) -> bool {
        match self {
            Self::Ended(report) => report.status == ApplyStatus::Complete,
            Self::Renewed => true,
            Self::NotFetched(_) | Self::Left(_) => false,
        }
    }
}
