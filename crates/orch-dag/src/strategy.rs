//! What the failure of a task means for the rest of the run.

use std::fmt;

/// What the failure of a task means for the rest of the run. Set on the plan, overridden on a task; the strategy of
/// the task that failed decides. Retries come before: a strategy applies when there are none left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Start nothing new, let what runs come to its end.
    Stop,
    /// Start nothing new, and cancel what runs.
    #[default]
    StopAll,
    /// Skip what depends on the task, go on with the rest.
    Continue,
}

impl fmt::Display for OnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "stop",
            Self::StopAll => "stop all",
            Self::Continue => "continue",
        })
    }
}
