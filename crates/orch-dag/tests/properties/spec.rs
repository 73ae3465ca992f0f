//! Random plans, as data that both the engine and the model are given.

use orch_dag::HostStatus;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// How a task behaves when it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Changes,
    ChangesNothing,
    Fails,
    FailsAtFirst,
    Panics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardSpec {
    Never,
    FirstDependencyChanged,
    OnlyIfFailed,
    OnlyIfAllChanged,
    AnyHost(HostStatus),
    AllHosts(HostStatus),
    EvenIfFailed,
}

#[derive(Debug, Clone)]
pub(crate) struct TaskSpec {
    pub(crate) behaviour: Behaviour,
    /// Tasks of a lower number.
    pub(crate) after: Vec<usize>,
    pub(crate) only_if_changed: bool,
    pub(crate) guards: Vec<GuardSpec>,
    pub(crate) hosts: Vec<HostStatus>,
    /// How often it lets others go first.
    pub(crate) naps: u8,
    /// Whether it also sleeps each time, which only a clock that jumps makes bearable.
    pub(crate) sleeps: bool,
}

/// Tasks by number, each after those it depends on, and the order in which the plan lists them.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) tasks: Vec<TaskSpec>,
    pub(crate) listed: Vec<usize>,
}

pub(crate) fn name(task: usize) -> String {
    format!("t{task}")
}

pub(crate) fn number(name: &str) -> usize {
    name[1..].parse().unwrap()
}

pub(crate) fn specs() -> impl Strategy<Value = Spec> {
    vec((task(), vec(any::<Index>(), 0..4)), 1..40).prop_flat_map(|drafts| {
        let count = drafts.len();
        let tasks: Vec<TaskSpec> = drafts.into_iter().enumerate().map(connect).collect();
        let listed = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        listed.prop_map(move |listed| Spec { tasks: tasks.clone(), listed })
    })
}

fn connect((number, (mut task, wanted)): (usize, (TaskSpec, Vec<Index>))) -> TaskSpec {
    if number > 0 {
        task.after = wanted.into_iter().map(|index| index.index(number)).collect();
    }
    task
}

fn task() -> impl Strategy<Value = TaskSpec> {
    let behaviour = prop_oneof![
        5 => Just(Behaviour::Changes),
        3 => Just(Behaviour::ChangesNothing),
        2 => Just(Behaviour::Fails),
        1 => Just(Behaviour::FailsAtFirst),
        1 => Just(Behaviour::Panics),
    ];
    let guards = prop_oneof![3 => Just(Vec::new()), 2 => vec(guard(), 1..3)];
    let only_if_changed = prop::bool::weighted(0.2);
    (behaviour, only_if_changed, guards, vec(host(), 0..3), 0u8..4).prop_map(
        |(behaviour, only_if_changed, guards, hosts, naps)| TaskSpec {
            behaviour,
            after: Vec::new(),
            only_if_changed,
            guards,
            hosts,
            naps,
            sleeps: true,
        },
    )
}

fn guard() -> impl Strategy<Value = GuardSpec> {
    use GuardSpec::{EvenIfFailed, FirstDependencyChanged, Never, OnlyIfAllChanged, OnlyIfFailed};
    prop_oneof![
        5 => select(vec![Never, FirstDependencyChanged, OnlyIfFailed, OnlyIfAllChanged, EvenIfFailed]),
        1 => host().prop_map(GuardSpec::AnyHost),
        1 => host().prop_map(GuardSpec::AllHosts),
    ]
}

fn host() -> impl Strategy<Value = HostStatus> {
    select(vec![HostStatus::Changed, HostStatus::Unchanged, HostStatus::Skipped, HostStatus::Failed])
}
