//! One run of a random plan, with everything that happened in it noted down.

use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use orch_dag::{Context, HostStatus, OnError, Outcome, Plan, Report, Retry, Runner, TaskError};
use tokio::runtime::{Builder, Runtime};

use crate::spec::{Behaviour, GuardSpec, Spec, TaskSpec, name, number};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// An attempt began; whether the ends of all dependencies could be read.
    Started {
        task: usize,
        informed: bool,
    },
    Ended {
        task: usize,
    },
}

pub(crate) type Events = Arc<Mutex<Vec<Event>>>;

pub(crate) struct Trial {
    pub(crate) report: Report<u64>,
    pub(crate) events: Vec<Event>,
}

impl Trial {
    pub(crate) fn ran(&self, wanted: &str) -> bool {
        let wanted = number(wanted);
        self.events.iter().any(|event| matches!(event, Event::Started { task, .. } if *task == wanted))
    }
}

/// Runs the plan in a runtime of one thread whose clock jumps: naps take no time.
pub(crate) fn run(spec: &Spec, on_error: OnError, runner: Runner<u64>) -> Trial {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    run_in(&runtime, spec, on_error, runner)
}

pub(crate) fn run_in(runtime: &Runtime, spec: &Spec, on_error: OnError, runner: Runner<u64>) -> Trial {
    mute_expected_panics();
    let events = Events::default();
    let plan = plan(spec, on_error, &events);
    let report = runtime.block_on(runner.run(plan)).unwrap();
    let events = events.lock().unwrap().clone();
    Trial { report, events }
}

/// Tasks that panic on purpose would bury the message of a property that fails.
fn mute_expected_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&"broken") {
                usual(info);
            }
        }));
    });
}

fn plan(spec: &Spec, on_error: OnError, events: &Events) -> Plan<u64> {
    let mut plan = Plan::new("random").on_error(on_error);
    for number in &spec.listed {
        let task = &spec.tasks[*number];
        let (behaving, events) = (task.clone(), events.clone());
        let built = plan.task(name(*number), move |cx| behave(cx, behaving.clone(), events.clone()));
        built.after_all(task.after.iter().map(|number| name(*number)));
        built.retry(Retry::times(u32::from(task.behaviour == Behaviour::FailsAtFirst)));
        if task.only_if_changed {
            built.only_if_changed();
        }
        for guard in &task.guards {
            add_guard(built, *guard, task.after.first().map(|number| name(*number)));
        }
    }
    plan
}

fn add_guard(task: &mut orch_dag::Task<u64>, guard: GuardSpec, first: Option<String>) {
    match guard {
        GuardSpec::Never => task.when("never", |_| false),
        GuardSpec::FirstDependencyChanged => task.when("first changed", move |results| {
            first.as_ref().and_then(|first| results.get(first)).is_some_and(orch_dag::TaskReport::is_changed)
        }),
        GuardSpec::OnlyIfFailed => task.only_if_failed(),
        GuardSpec::OnlyIfAllChanged => task.only_if_all_changed(),
        GuardSpec::AnyHost(status) => task.only_if_any_host(status),
        GuardSpec::AllHosts(status) => task.only_if_all_hosts(status),
        GuardSpec::EvenIfFailed => task.even_if_failed(),
    };
}

async fn behave(cx: Context<u64>, spec: TaskSpec, events: Events) -> Result<Outcome<u64>, TaskError> {
    let task = number(cx.task());
    let informed = spec.after.iter().all(|number| cx.result(&name(*number)).is_some());
    events.lock().unwrap().push(Event::Started { task, informed });
    for _ in 0..spec.naps {
        tokio::task::yield_now().await;
        if spec.sleeps {
            tokio::time::sleep(Duration::from_millis(spec.naps.into())).await;
        }
    }
    events.lock().unwrap().push(Event::Ended { task });

    let sum =
        spec.after.iter().filter_map(|number| cx.value(&name(*number))).copied().fold(0, u64::wrapping_add);
    let outcome = match spec.behaviour {
        Behaviour::FailsAtFirst if cx.attempt() == 1 => return Err(TaskError::new("at first")),
        Behaviour::Changes | Behaviour::FailsAtFirst => Outcome::changed(),
        Behaviour::ChangesNothing => Outcome::unchanged(),
        Behaviour::Panics => panic!("broken"),
        Behaviour::Fails => {
            let error = TaskError::new("broken");
            return Err(hosts(&spec).fold(error, |error, (name, status)| error.host(name, status)));
        }
    };
    let outcome = outcome.with(sum.wrapping_add(task as u64));
    Ok(hosts(&spec).fold(outcome, |outcome, (name, status)| outcome.host(name, status)))
}

fn hosts(spec: &TaskSpec) -> impl Iterator<Item = (String, HostStatus)> {
    spec.hosts.iter().enumerate().map(|(index, status)| (format!("host{index}"), *status))
}
