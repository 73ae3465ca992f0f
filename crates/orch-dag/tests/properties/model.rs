//! The decision order once more, written down as plainly as possible and without the engine.
//!
//! For the strategy `Continue`: there every task has its turn, so the end of each follows from those before it.

use orch_dag::HostStatus;

use crate::spec::{Behaviour, GuardSpec, Spec, TaskSpec, name};

/// How a task must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) status: String,
    pub(crate) value: Option<u64>,
    pub(crate) hosts: Vec<HostStatus>,
    /// The number of the failed task behind it.
    culprit: Option<usize>,
}

impl Expected {
    fn is_changed(&self) -> bool {
        self.status == "changed"
    }
}

pub(crate) fn expect(spec: &Spec) -> Vec<Expected> {
    let mut ended: Vec<Expected> = Vec::new();
    for (number, task) in spec.tasks.iter().enumerate() {
        let next = one(number, task, &ended);
        ended.push(next);
    }
    ended
}

fn one(number: usize, task: &TaskSpec, ended: &[Expected]) -> Expected {
    let dependencies: Vec<&Expected> = task.after.iter().map(|number| &ended[*number]).collect();
    let culprit = dependencies.iter().find_map(|dependency| dependency.culprit);
    let skipped = |reason: String, culprit| Expected {
        status: format!("skipped: {reason}"),
        value: None,
        hosts: Vec::new(),
        culprit,
    };
    if let Some(failed) = culprit
        && !task.guards.iter().copied().any(looks_at_failures)
    {
        return skipped(format!("dependency `{}` failed", name(failed)), culprit);
    }
    if task.only_if_changed && !dependencies.iter().any(|dependency| dependency.is_changed()) {
        return skipped("no dependency changed".to_owned(), None);
    }
    for guard in task.guards.iter().copied() {
        if !holds(guard, &dependencies) {
            return skipped(format!("guard `{}` does not hold", label(guard)), None);
        }
    }
    run(number, task, &dependencies)
}

fn run(number: usize, task: &TaskSpec, dependencies: &[&Expected]) -> Expected {
    let status = match task.behaviour {
        Behaviour::Changes | Behaviour::FailsAtFirst => "changed",
        Behaviour::ChangesNothing => "unchanged",
        Behaviour::Fails => "failed: broken",
        Behaviour::Panics => "failed: panicked: broken",
    };
    let failed = status.starts_with("failed");
    let sum = dependencies.iter().filter_map(|dependency| dependency.value).fold(0u64, u64::wrapping_add);
    let hosts = if task.behaviour == Behaviour::Panics { Vec::new() } else { task.hosts.clone() };
    Expected {
        status: status.to_owned(),
        value: (!failed).then(|| sum.wrapping_add(number as u64)),
        hosts,
        culprit: failed.then_some(number),
    }
}

fn looks_at_failures(guard: GuardSpec) -> bool {
    match guard {
        GuardSpec::OnlyIfFailed | GuardSpec::EvenIfFailed => true,
        GuardSpec::AnyHost(status) | GuardSpec::AllHosts(status) => status == HostStatus::Failed,
        GuardSpec::Never | GuardSpec::FirstDependencyChanged | GuardSpec::OnlyIfAllChanged => false,
    }
}

fn holds(guard: GuardSpec, dependencies: &[&Expected]) -> bool {
    let hosts: Vec<HostStatus> =
        dependencies.iter().flat_map(|dependency| dependency.hosts.clone()).collect();
    match guard {
        GuardSpec::Never => false,
        GuardSpec::FirstDependencyChanged => dependencies.first().is_some_and(|first| first.is_changed()),
        GuardSpec::OnlyIfFailed => dependencies.iter().any(|dependency| dependency.culprit.is_some()),
        GuardSpec::OnlyIfAllChanged => {
            !dependencies.is_empty() && dependencies.iter().all(|dependency| dependency.is_changed())
        }
        GuardSpec::AnyHost(status) => hosts.contains(&status),
        GuardSpec::AllHosts(status) => !hosts.is_empty() && hosts.iter().all(|host| *host == status),
        GuardSpec::EvenIfFailed => true,
    }
}

fn label(guard: GuardSpec) -> String {
    match guard {
        GuardSpec::Never => "never".to_owned(),
        GuardSpec::FirstDependencyChanged => "first changed".to_owned(),
        GuardSpec::OnlyIfFailed => "some dependency failed".to_owned(),
        GuardSpec::OnlyIfAllChanged => "all dependencies changed".to_owned(),
        GuardSpec::AnyHost(status) => format!("any host {status}"),
        GuardSpec::AllHosts(status) => format!("all hosts {status}"),
        GuardSpec::EvenIfFailed => "even if a dependency failed".to_owned(),
    }
}
