//! Why a task failed, as the task says it.
//!
//! `TaskError` is not itself a `std::error::Error`: only so can `?` turn every error into one.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::outcome::{HostStatus, Hosts};
use crate::status::Failure;

/// Why a task failed: any error, and what the engine should make of it.
#[derive(Debug)]
pub struct TaskError {
    error: Box<dyn Error + Send + Sync>,
    retry: bool,
    timed_out: bool,
    hosts: Hosts,
}

impl TaskError {
    /// Wraps an error, or a text.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), retry: true, timed_out: false, hosts: Hosts::new() }
    }

    /// Marks the failure as one that another attempt cannot mend: no retry is made.
    pub fn no_retry(mut self) -> Self {
        self.retry = false;
        self
    }

    /// Marks the failure as a wait that took too long; it is reported as such, and may be retried.
    pub fn timed_out(mut self) -> Self {
        self.timed_out = true;
        self
    }

    /// Notes what became of one host before the task failed.
    pub fn host(mut self, name: impl Into<String>, status: HostStatus) -> Self {
        self.hosts.insert(name.into(), status);
        self
    }

    /// The wrapped error.
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.error.as_ref()
    }

    /// Whether another attempt may help.
    pub fn may_retry(&self) -> bool {
        self.retry
    }

    pub(crate) fn into_failure(self, elapsed: Duration) -> (Failure, Hosts) {
        let chain = chain(self.error.as_ref());
        let failure = if self.timed_out {
            Failure::TimedOut { after: elapsed, chain }
        } else {
            Failure::Error { chain }
        };
        (failure, self.hosts)
    }
}

/// The texts of an error and of all its sources, outermost first.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |&error| error.source()).map(ToString::to_string).collect()
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for TaskError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
