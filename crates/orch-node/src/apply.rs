//! Making a configuration true, and saying what differs from it: one path, which the second only walks half of.

use orch_model::{ApplyReport, ApplyStatus, Config, Mode, ResourceReport};

use crate::error::ApplyError;
use crate::node::Node;
use crate::resource::{self, Extent, Look, Resource};

/// What goes on around an apply.
pub(crate) struct Around<'a> {
    /// Who brought the configuration.
    pub(crate) mode: Mode,
    /// How often it was tried, this time included.
    pub(crate) attempts: u32,
    /// How much of it is made true.
    pub(crate) extent: Extent,
    /// Told of every resource once it is done.
    pub(crate) tell: &'a dyn Fn(&ResourceReport),
    /// Asked between resources whether to stop there, and why.
    pub(crate) stop: &'a dyn Fn() -> Option<Stop>,
}

/// Why the work ends between two resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Somebody said so.
    Cancelled,
    /// Its time is over.
    Late,
}

impl Stop {
    const fn words(self) -> &'static str {
        match self {
            Self::Cancelled => "the work was cancelled",
            Self::Late => "the time limit was reached",
        }
    }
}

/// Makes a configuration true, resource by resource. One that fails stops none of the others. A second time changes
/// nothing.
pub(crate) fn apply(node: &Node, config: &Config, around: &Around<'_>) -> ApplyReport {
    let started_at = jiff::Timestamp::now().to_string();
    let mut done = Done::default();
    for resource in resource::all(node, config, around.extent) {
        done.stop = done.stop.or_else(around.stop);
        if let Some(stop) = done.stop {
            done.miss(resource.as_ref(), stop);
        } else {
            let outcome = make(node, resource.as_ref());
            done.add(resource.as_ref(), outcome, around.tell);
        }
    }
    let error = done.error();
    let status = if error.is_some() { ApplyStatus::Failed } else { ApplyStatus::Complete };
    let resources = done.reports;
    ApplyReport { started_at, status, error, resources, ..failed(config, around.mode, around.attempts, "") }
}

/// The report of an apply that did not come to looking at anything.
pub(crate) fn failed(config: &Config, mode: Mode, attempts: u32, why: &str) -> ApplyReport {
    let now = jiff::Timestamp::now().to_string();
    ApplyReport {
        phase: "config".into(),
        status: ApplyStatus::Failed,
        node: config.node.clone(),
        spec: config.spec.clone(),
        spec_digest: config.digest(),
        mode,
        started_at: now.clone(),
        finished_at: now,
        attempts,
        resources: Vec::new(),
        health: Vec::new(),
        error: Some(why.into()),
    }
}

/// Says of every resource whether it differs. Changes nothing.
pub(crate) fn inspect(node: &Node, config: &Config) -> Vec<ResourceReport> {
    let look = |resource: Box<dyn Resource>| match resource.look(node) {
        Ok(Look::AsWanted) => report(resource.as_ref(), false, None),
        Ok(Look::Differs(how)) => report(resource.as_ref(), true, Some(how)),
        Ok(Look::Skip(why)) => skipped(resource.as_ref(), why),
        // What cannot be looked at is not known to be as wanted.
        Err(error) => report(resource.as_ref(), true, Some(error.in_full())),
    };
    resource::all(node, config, Extent::Whole).into_iter().map(look).collect()
}

/// Puts the secrets of a configuration in place, and says of which that failed and why.
pub(crate) fn put_secrets(node: &Node, config: &Config) -> Vec<String> {
    let failure = |resource: Box<dyn Resource>| {
        let error = make(node, resource.as_ref()).err()?;
        Some(format!("{} {}: {}", resource.kind(), resource.name(), error.in_full()))
    };
    resource::only_secrets(config).into_iter().filter_map(failure).collect()
}

/// What became of a resource.
enum Outcome {
    Unchanged,
    Changed(String),
    Skipped(String),
}

/// Looks, changes what differs, and looks again: what was asked for and what came of it are two things.
fn make(node: &Node, resource: &dyn Resource) -> Result<Outcome, ApplyError> {
    let difference = match resource.look(node)? {
        Look::AsWanted => return Ok(Outcome::Unchanged),
        Look::Skip(why) => return Ok(Outcome::Skipped(why)),
        Look::Differs(how) => how,
    };
    resource.change(node)?;
    match resource.look(node)? {
        Look::AsWanted => Ok(Outcome::Changed(difference)),
        Look::Differs(how) => {
            Err(ApplyError::Impossible(format!("it was changed, and still is not as it should be: {how}")))
        }
        Look::Skip(why) => Ok(Outcome::Skipped(why)),
    }
}

#[derive(Default)]
struct Done {
    reports: Vec<ResourceReport>,
    failures: Vec<String>,
    stop: Option<Stop>,
    missed: usize,
}

impl Done {
    fn add(
        &mut self,
        resource: &dyn Resource,
        outcome: Result<Outcome, ApplyError>,
        tell: &dyn Fn(&ResourceReport),
    ) {
        let report = match outcome {
            Ok(Outcome::Unchanged) => report(resource, false, None),
            Ok(Outcome::Changed(how)) => report(resource, true, Some(how)),
            Ok(Outcome::Skipped(why)) => skipped(resource, why),
            Err(error) => {
                let why = error.in_full();
                self.failures.push(format!("{} {}: {why}", resource.kind(), resource.name()));
                report(resource, false, Some(why))
            }
        };
        tell(&report);
        self.reports.push(report);
    }

    fn miss(&mut self, resource: &dyn Resource, stop: Stop) {
        self.missed += 1;
        self.reports.push(report(resource, false, Some(format!("it was not reached: {}", stop.words()))));
    }

    fn error(&self) -> Option<String> {
        let stopped = self
            .stop
            .map(|stop| format!("{} before {} of {}", stop.words(), self.missed, self.reports.len()));
        let all: Vec<String> = stopped.into_iter().chain(self.failures.iter().cloned()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

fn report(resource: &dyn Resource, changed: bool, detail: Option<String>) -> ResourceReport {
    let (kind, name) = (resource.kind().into(), resource.name());
    ResourceReport { kind, name, changed, skipped: None, detail }
}

fn skipped(resource: &dyn Resource, why: String) -> ResourceReport {
    ResourceReport { skipped: Some(why), ..report(resource, false, None) }
}
