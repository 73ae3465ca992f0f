//! Why a step did not succeed, and what to try then.

use std::time::Duration;

use orch_dag::TaskError;
use thiserror::Error;

use super::lease::IN_USE_HINT;
use crate::journal::JournalFileError;
use crate::provider::ProviderError;
use crate::registry::RegistryError;
use crate::transport::TransportError;
use crate::treasury::TreasuryError;

/// What to try for a node that the plan knew must not be touched.
pub(crate) const REFUSED_HINT: &str =
    "`orch plan` shows what stands in the way; where it says so, `--replace` makes the machine anew";

/// Why a step did not succeed.
#[derive(Debug, Error)]
pub(crate) enum StepError {
    /// The plan knew that the node must not be touched.
    #[error("{0}")]
    Refused(String),
    /// The provider could not do it.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The node could not be configured.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Nothing can be found out about a node that fetches its configuration.
    #[error(transparent)]
    Registry(RegistryError),
    /// Secrets could not be had, or not be kept from those who must not have them.
    #[error(transparent)]
    Treasury(TreasuryError),
    /// It took longer than its phase may, and a fresh look did not find it done.
    #[error("not done within {}s: {seen}", limit.as_secs_f64())]
    TimedOut {
        /// The phase's time.
        limit: Duration,
        /// What a fresh look found instead.
        seen: String,
    },
    /// Whoever did it says it is done, and a fresh look says it is not.
    #[error("said to be done, but {seen}")]
    NotSeen {
        /// What a fresh look found instead.
        seen: String,
    },
    /// The node is not the run's alone, or not any more.
    #[error("{0}")]
    Unleased(String),
    /// The node was to go back to the system before, and what was read of it says that it did not.
    #[error("{0}")]
    NotBack(String),
    /// Nobody here can take the node back to the system before.
    #[error("nobody here can take it back to the system before")]
    NoWayBack,
    /// The mark of a machine to be made could not be written down first.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
}

impl StepError {
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Provider(error) => error.is_passing(),
            Self::Transport(error) => error.is_passing(),
            Self::Registry(error) => error.is_passing(),
            Self::NotSeen { .. } => true,
            Self::Refused(_)
            | Self::TimedOut { .. }
            | Self::Journal(_)
            | Self::Treasury(_)
            | Self::Unleased(_)
            | Self::NotBack(_)
            | Self::NoWayBack => false,
        }
    }

    fn is_late(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Provider(error) => error.is_late(),
            Self::Transport(error) => error.is_late(),
            Self::NotSeen { .. }
            | Self::Refused(_)
            | Self::Journal(_)
            | Self::Registry(_)
            | Self::Treasury(_)
            | Self::Unleased(_)
            | Self::NotBack(_)
            | Self::NoWayBack => false,
        }
    }

    pub(super) fn hint(&self) -> String {
        match self {
            Self::Provider(error) => error.hint(),
            Self::Transport(error) => error.hint(),
            Self::Registry(error) => error.hint(),
            Self::Treasury(error) => error.hint.clone(),
            Self::Refused(_) => REFUSED_HINT.into(),
            Self::TimedOut { .. } => {
                "run again: it goes on from what is there; give it more time with `settings.timeouts`".into()
            }
            Self::NotSeen { .. } => "run again: it goes on from what is there".into(),
            Self::Unleased(_) => IN_USE_HINT.into(),
            Self::NotBack(_) | Self::NoWayBack => "see how the node stands, and run again".into(),
            Self::Journal(_) => "see whether the state directory can be written and has room".into(),
        }
    }

    /// The last lines of what tells more.
    pub(super) fn evidence(&self) -> &[String] {
        match self {
            Self::Provider(error) => error.evidence(),
            Self::Transport(error) => error.evidence(),
            Self::Refused(_)
            | Self::TimedOut { .. }
            | Self::NotSeen { .. }
            | Self::Journal(_)
            | Self::Registry(_)
            | Self::Treasury(_)
            | Self::Unleased(_)
            | Self::NotBack(_)
            | Self::NoWayBack => &[],
        }
    }

    /// As the engine sees it: whether it is worth another try, and whether time was the cause.
    pub(crate) fn into_task_error(self) -> TaskError {
        let (passing, late) = (self.is_passing(), self.is_late());
        let error = TaskError::new(self);
        match (passing, late) {
            (true, _) => error,
            (false, true) => error.no_retry().timed_out(),
            (false, false) => error.no_retry(),
        }
    }
}
