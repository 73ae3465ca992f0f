//! Workers: each takes the next ready task, sees it to its end, and takes another, until there is none.
//!
//! Tasks are not spawned one by one: a worker runs them inside its own future, and further workers are hired only
//! while ready tasks are left over. That is what makes small tasks cheap.

use std::sync::Arc;

use crate::attempt::{Ending, tries};
use crate::journal::Entry;
use crate::run::Run;
use crate::scheduler::Turn;
use crate::status::{Failure, Status};
use crate::task_report::TaskReport;
use crate::{BoxFuture, caught, decision};

/// Runs everything that can be run.
pub(crate) async fn work_off<T: Send + Sync + 'static>(run: &Arc<Run<T>>) {
    let wanted = run.scheduler().hire();
    if wanted {
        hire(run);
        run.over.notified().await;
    }
}

fn hire<T: Send + Sync + 'static>(run: &Arc<Run<T>>) {
    tokio::spawn(work(Arc::clone(run)));
    // The runtime keeps the task spawned last for the thread it is on, and no other thread may take it from there:
    // the new worker would wait while this one is busy. Spawning once more moves it to where all can reach it.
    tokio::spawn(async {});
}

/// Boxed, because a worker spawns others like itself.
fn work<T: Send + Sync + 'static>(run: Arc<Run<T>>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        run.scheduler().arrive();
        let mut next = turn(&run, None).await;
        while let Turn::Run { task, hire: wanted } = next {
            if wanted {
                hire(&run);
            }
            if let Err(message) = caught::wait(see_to_its_end(&run, task)).await {
                give_up(&run, task, message);
            }
            next = turn(&run, Some(task)).await;
            // A row of tasks that never wait must not keep the thread from everything else.
            tokio::task::consume_budget().await;
        }
        if next == (Turn::Leave { last: true }) {
            run.over.notify_one();
        }
    })
}

/// What to do next, after the end of a task. While the run is paused, that is not said; what ended has ended all the same.
async fn turn<T>(run: &Run<T>, mut ended: Option<usize>) -> Turn {
    if run.signal.is_paused() {
        if let Some(task) = ended.take() {
            run.scheduler().complete(task, &run.graph);
        }
        run.signal.resumed().await;
    }
    let open = run.is_open();
    let mut scheduler = run.scheduler();
    if let Some(task) = ended {
        scheduler.complete(task, &run.graph);
    }
    scheduler.turn(open)
}

async fn see_to_its_end<T: Send + Sync + 'static>(run: &Arc<Run<T>>, index: usize) {
    let task = &run.plan.tasks[index];
    let unrun = |status| Ending::decided(TaskReport::unrun(task.name.clone(), status));
    let ending = match caught::call(|| decision::decide(task, &run.dependencies(index))) {
        Ok(None) => tries(run, index).await,
        Ok(Some(reason)) => unrun(Status::Skipped(reason)),
        Err(message) => unrun(Status::Failed(Failure::Panicked { message })),
    };
    let report = Arc::new(ending.report);
    if ending.decided {
        if report.status.is_failed() {
            run.apply_strategy(index);
        }
        // A failure is noted by the run itself; the task's end is true all the same.
        let _ = run.journal(|| Entry::Ended(Arc::clone(&report))).await;
    }
    run.publish(index, &report);
}

/// Ends a task around which the engine's own code panicked: say, a runtime without a clock, or an error whose text
/// cannot be made. Without an end, everything behind it would wait for ever.
fn give_up<T>(run: &Run<T>, index: usize, message: String) {
    let status = Status::Failed(Failure::Panicked { message });
    run.apply_strategy(index);
    run.publish(index, &Arc::new(TaskReport::unrun(run.plan.tasks[index].name.clone(), status)));
}
