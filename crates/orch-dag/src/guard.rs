//! Conditions under which a task runs at all.

use std::fmt;

use crate::outcome::HostStatus;
use crate::results::{Dependencies, Results};
use crate::task_report::TaskReport;

/// Whether one or every one must match. "Every" asks for at least one: nothing is not a reason to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Any,
    All,
}

type Condition<T> = Box<dyn Fn(&Results<T>) -> bool + Send + Sync>;

/// A condition under which a task runs at all.
pub(crate) enum Guard<T> {
    When { label: String, holds: Condition<T> },
    SomeFailed,
    AllChanged,
    Hosts { quantifier: Quantifier, status: HostStatus },
    EvenIfFailed,
}

impl<T> Guard<T> {
    /// Whether the guard wants to judge failed dependencies itself, so that they must not decide before it.
    pub(crate) fn looks_at_failures(&self) -> bool {
        match self {
            Self::SomeFailed | Self::EvenIfFailed | Self::Hosts { status: HostStatus::Failed, .. } => true,
            Self::When { .. } | Self::AllChanged | Self::Hosts { .. } => false,
        }
    }

    pub(crate) fn holds(&self, dependencies: &Dependencies<'_, T>) -> bool {
        match self {
            Self::When { holds, .. } => holds(dependencies.results),
            Self::SomeFailed => dependencies.iter().any(|task| task.culprit().is_some()),
            Self::AllChanged => matches(Quantifier::All, dependencies.iter().map(TaskReport::is_changed)),
            Self::Hosts { quantifier, status } => {
                let hosts = dependencies.iter().flat_map(|task| task.hosts.values());
                matches(*quantifier, hosts.map(|host| host == status))
            }
            Self::EvenIfFailed => true,
        }
    }
}

fn matches(quantifier: Quantifier, mut values: impl Iterator<Item = bool>) -> bool {
    match quantifier {
        Quantifier::Any => values.any(|value| value),
        Quantifier::All => values.next() == Some(true) && values.all(|value| value),
    }
}

impl<T> fmt::Display for Guard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::When { label, .. } => f.write_str(label),
            Self::SomeFailed => f.write_str("some dependency failed"),
            Self::AllChanged => f.write_str("all dependencies changed"),
            Self::Hosts { quantifier: Quantifier::Any, status } => write!(f, "any host {status}"),
            Self::Hosts { quantifier: Quantifier::All, status } => write!(f, "all hosts {status}"),
            Self::EvenIfFailed => f.write_str("even if a dependency failed"),
        }
    }
}
