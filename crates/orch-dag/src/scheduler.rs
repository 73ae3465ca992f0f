//! Which task is next, and whether another worker is wanted for it.
//!
//! Pure bookkeeping: it starts nothing and waits for nothing. The caller holds the lock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::Graph;

/// Marks a task that had ended before the run began: counted down as it may be, it never becomes ready.
const ENDED: usize = usize::MAX;

/// Which tasks are ready, what the others still wait for, and how many workers there are.
#[derive(Debug)]
pub(crate) struct Scheduler {
    ready: BinaryHeap<Reverse<usize>>,
    waiting: Vec<usize>,
    limit: Option<usize>,
    workers: usize,
    /// Whether a worker was hired and has not arrived. One at a time is enough: it hires the next when it takes a
    /// task and leaves others, so quick tasks do not each get a worker of their own.
    arriving: bool,
}

/// What a worker does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Runs this task; before that, hires another worker if asked to.
    Run { task: usize, hire: bool },
    /// Leaves; the last one says that the work is over.
    Leave { last: bool },
}

impl Scheduler {
    /// `ended` tells of tasks that are not to be run. No limit means as many workers as there are ready tasks.
    pub(crate) fn new(graph: &Graph, ended: impl Fn(usize) -> bool, limit: Option<usize>) -> Self {
        let missing = |task: usize| {
            let dependencies = graph.dependencies.of(task).iter();
            if ended(task) { ENDED } else { dependencies.filter(|task| !ended(**task)).count() }
        };
        let waiting: Vec<usize> = (0..graph.order.len()).map(missing).collect();
        let ready = (0..waiting.len()).filter(|task| waiting[*task] == 0).map(Reverse).collect();
        Self { ready, waiting, limit, workers: 0, arriving: false }
    }

    /// Whether a worker should be hired, which is then counted as being on its way.
    pub(crate) fn hire(&mut self) -> bool {
        let room = self.limit.is_none_or(|limit| self.workers < limit);
        let wanted = room && !self.arriving && !self.ready.is_empty();
        self.workers += usize::from(wanted);
        self.arriving |= wanted;
        wanted
    }

    /// A hired worker is there.
    pub(crate) fn arrive(&mut self) {
        self.arriving = false;
    }

    /// The next turn of a worker; while the run is not `open`, nothing new is started.
    pub(crate) fn turn(&mut self, open: bool) -> Turn {
        if let Some(task) = self.pop().filter(|_| open) {
            return Turn::Run { task, hire: self.hire() };
        }
        self.workers -= 1;
        Turn::Leave { last: self.workers == 0 }
    }

    /// The ready task that stands first in the plan.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        self.ready.pop().map(|Reverse(task)| task)
    }

    /// Makes ready what waited for nothing but this task.
    pub(crate) fn complete(&mut self, task: usize, graph: &Graph) {
        for dependent in graph.dependents.of(task) {
            self.waiting[*dependent] -= 1;
            if self.waiting[*dependent] == 0 {
                self.ready.push(Reverse(*dependent));
            }
        }
    }

    /// Whether something the task depends on has not ended.
    pub(crate) fn is_waiting(&self, task: usize) -> bool {
        self.waiting[task] != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Plan, graph};

    fn three(limit: Option<usize>) -> Scheduler {
        let mut plan: Plan = Plan::new("p");
        for name in ["a", "b", "c"] {
            plan.task(name, |_| async { Ok(Outcome::changed()) });
        }
        Scheduler::new(&graph::resolve(&plan).graph, |_| false, limit)
    }

    #[test]
    fn workers_are_hired_one_at_a_time_until_no_ready_task_is_left() {
        let mut scheduler = three(None);
        assert!(scheduler.hire());
        assert!(!scheduler.hire(), "one is on its way");
        for (task, hire) in [(0, true), (1, true), (2, false)] {
            scheduler.arrive();
            assert_eq!(scheduler.turn(true), Turn::Run { task, hire });
        }
        assert_eq!(scheduler.turn(true), Turn::Leave { last: false });
    }

    #[test]
    fn a_worker_on_its_way_counts_towards_the_limit() {
        let mut scheduler = three(Some(1));
        assert!(scheduler.hire());
        scheduler.arrive();
        assert_eq!(scheduler.turn(true), Turn::Run { task: 0, hire: false });
    }

    #[test]
    fn nothing_is_started_when_the_run_is_not_open() {
        let mut scheduler = three(None);
        assert!(scheduler.hire());
        scheduler.arrive();
        assert_eq!(scheduler.turn(false), Turn::Leave { last: true });
    }
}
