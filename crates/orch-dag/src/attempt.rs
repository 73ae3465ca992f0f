//! The attempts of one task: start, timeout, cancellation, and the wait before the next.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::context::Context;
use crate::control::Phase;
use crate::journal::Entry;
use crate::outcome::{Hosts, Outcome};
use crate::run::Run;
use crate::status::{Failure, Status};
use crate::task_error::TaskError;
use crate::task_report::TaskReport;
use crate::{caught, retry};

/// How a task came to its end.
pub(crate) struct Ending<T> {
    pub(crate) report: TaskReport<T>,
    /// Whether this is the task's own end. If the run cut it short, it is not journalled, so that a resumed run
    /// takes the task up again.
    pub(crate) decided: bool,
}

impl<T> Ending<T> {
    pub(crate) fn decided(report: TaskReport<T>) -> Self {
        Self { report, decided: true }
    }

    fn cut_short(report: TaskReport<T>) -> Self {
        Self { report, decided: false }
    }
}

/// Why one attempt did not succeed.
struct Failed {
    failure: Failure,
    hosts: Hosts,
    may_retry: bool,
}

impl Failed {
    fn by(failure: Failure) -> Self {
        Self { failure, hosts: Hosts::new(), may_retry: true }
    }
}

/// Tries the task until it succeeds, may not be retried, or the run ends.
pub(crate) async fn tries<T: Send + Sync + 'static>(run: &Arc<Run<T>>, index: usize) -> Ending<T> {
    let task = &run.plan.tasks[index];
    if !may_start(run, index, 1).await {
        let status = Status::Skipped(run.stop_reason());
        return Ending::cut_short(TaskReport::unrun(task.name.clone(), status));
    }
    let began = Instant::now();
    let mut report = TaskReport::unrun(task.name.clone(), Status::Unchanged);
    report.started = Some(began.duration_since(run.began));
    run.tell(|hooks| hooks.before_task(&task.name));
    loop {
        report.attempts += 1;
        let result = attempt(run, index, report.attempts).await;
        report.duration = began.elapsed();
        let may_retry = match result {
            Ok(outcome) => return Ending::decided(succeeded(report, outcome)),
            Err(failed) => note(&mut report, failed),
        };
        if report.status == Status::Failed(Failure::Cancelled) {
            return Ending::cut_short(report);
        }
        if !may_retry || !task.retry.allows(report.attempts) {
            return Ending::decided(report);
        }
        if !pause(run, index, &report).await || !may_start(run, index, report.attempts + 1).await {
            return Ending::cut_short(report);
        }
    }
}

/// Puts a failed attempt into the report; whether another may help.
fn note<T>(report: &mut TaskReport<T>, failed: Failed) -> bool {
    report.hosts = failed.hosts;
    report.status = Status::Failed(failed.failure);
    failed.may_retry
}

fn succeeded<T>(mut report: TaskReport<T>, outcome: Outcome<T>) -> TaskReport<T> {
    report.status = if outcome.changed { Status::Changed } else { Status::Unchanged };
    report.hosts = outcome.hosts;
    report.value = Some(outcome.value);
    report
}

/// Writes the start down; whether the attempt may then be made.
async fn may_start<T>(run: &Run<T>, index: usize, attempt: u32) -> bool {
    let task = &run.plan.tasks[index].name;
    let written = run.journal(|| Entry::Started { task: Arc::clone(task), attempt }).await;
    // Writing takes time, in which the run may have been stopped.
    written.is_ok() && run.is_open()
}

/// Waits before the next attempt; whether there is to be one.
async fn pause<T>(run: &Run<T>, index: usize, report: &TaskReport<T>) -> bool {
    if !run.is_open() {
        return false;
    }
    let attempt = report.attempts;
    let random = retry::random(run.settings.seed, index, attempt);
    let wait = run.plan.tasks[index].retry.wait(attempt, random);
    if let Status::Failed(failure) = &report.status {
        run.tell(|hooks| hooks.on_retry(&report.name, attempt, failure, wait));
    }
    tokio::select! {
        biased;
        () = run.signal.reached(Phase::Stopping) => false,
        () = tokio::time::sleep(wait) => true,
    }
}

async fn attempt<T: Send + Sync + 'static>(
    run: &Arc<Run<T>>,
    index: usize,
    number: u32,
) -> Result<Outcome<T>, Failed> {
    let task = &run.plan.tasks[index];
    let context = Context::new(Arc::clone(run), index, number);
    let mut work = pin!(within(task.timeout, caught::run(move || (task.work)(context))));
    tokio::select! {
        biased;
        ended = &mut work => return ended,
        () = run.signal.reached(Phase::Cancelled) => {}
    }
    let cancelled = || Failed::by(Failure::Cancelled);
    if run.settings.grace.is_zero() {
        return Err(cancelled());
    }
    // What still succeeds has happened and is reported so; how the rest ends no longer matters.
    let ended = tokio::time::timeout(run.settings.grace, work).await;
    ended.map_err(|_| cancelled())?.map_err(|_| cancelled())
}

/// One call of a task, with its timeout, its panics and its errors all made one kind of failure.
async fn within<T>(
    timeout: Option<Duration>,
    work: impl Future<Output = Result<Result<Outcome<T>, TaskError>, String>>,
) -> Result<Outcome<T>, Failed> {
    let began = Instant::now();
    let returned = match timeout {
        None => work.await,
        Some(after) => match tokio::time::timeout(after, work).await {
            Ok(returned) => returned,
            Err(_) => return Err(Failed::by(Failure::TimedOut { after, chain: Vec::new() })),
        },
    };
    returned.map_err(|message| Failed::by(Failure::Panicked { message }))?.map_err(|error| {
        let may_retry = error.may_retry();
        let (failure, hosts) = error.into_failure(began.elapsed());
        Failed { failure, hosts, may_retry }
    })
}
