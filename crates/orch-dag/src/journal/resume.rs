//! What an earlier run left behind, and what of it a later run takes over.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Entry;
use crate::graph::Graph;
use crate::problem::Problem;
use crate::results::Names;
use crate::status::Status;
use crate::task_report::TaskReport;

/// What earlier runs of a plan left behind: tasks that ended are not run again, with what they returned at hand for
/// the others; tasks that started and did not end are.
///
/// A failure that is taken over means what it meant: its strategy applies, so that a run stopped by a failure stays
/// stopped until it is resumed with [`retry_failed`](Self::retry_failed).
#[derive(Debug)]
pub struct Resume<T = ()> {
    entries: Vec<Entry<T>>,
    retry_failed: bool,
}

/// The last thing that is known of a task, and where in the journal it stands.
struct Last<'a, T> {
    position: usize,
    ended: Option<&'a Arc<TaskReport<T>>>,
}

impl<T> Resume<T> {
    /// From the entries of a journal, in its order. Those of several runs may follow each other.
    pub fn new(entries: impl IntoIterator<Item = Entry<T>>) -> Self {
        Self { entries: entries.into_iter().collect(), retry_failed: false }
    }

    /// Runs failed tasks again, and decides again about all that were skipped.
    pub fn retry_failed(mut self) -> Self {
        self.retry_failed = true;
        self
    }

    /// The entries that name no task of the plan.
    pub(crate) fn problems(&self, names: &Names) -> impl Iterator<Item = Problem> {
        let strangers: BTreeSet<_> =
            self.entries.iter().map(Entry::task).filter(|task| !names.contains_key(*task)).cloned().collect();
        strangers.into_iter().map(|task| Problem::UnknownEntry { task })
    }

    /// The tasks that are not run again, with how they ended.
    pub(crate) fn ended(&self, names: &Names, graph: &Graph) -> Vec<(usize, Arc<TaskReport<T>>)> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        let mut last = self.last(names);
        let mut ended = Vec::new();
        for index in graph.order.iter().copied() {
            let report = last[index].as_ref().and_then(|last| last.ended).cloned();
            match report.filter(|report| self.keeps(report, index, &last, graph)) {
                Some(report) => ended.push((index, report)),
                None => last[index] = None,
            }
        }
        ended
    }

    fn last(&self, names: &Names) -> Vec<Option<Last<'_, T>>> {
        let mut last: Vec<Option<Last<'_, T>>> = std::iter::repeat_with(|| None).take(names.len()).collect();
        for (position, entry) in self.entries.iter().enumerate() {
            let ended = match entry {
                Entry::Started { .. } => None,
                Entry::Ended(report) => Some(report),
            };
            if let Some(index) = names.get(entry.task()) {
                last[*index] = Some(Last { position, ended });
            }
        }
        last
    }

    fn keeps(
        &self,
        report: &TaskReport<T>,
        index: usize,
        last: &[Option<Last<'_, T>>],
        graph: &Graph,
    ) -> bool {
        match report.status {
            Status::Changed | Status::Unchanged => true,
            Status::Failed(_) => !self.retry_failed,
            Status::Skipped(_) => !self.retry_failed && still_stands(index, last, graph),
        }
    }
}

/// Whether everything that a skipped task depends on is as it was when the task was skipped. It is not, if an earlier
/// run that retried failed tasks was cut before it came to this one.
fn still_stands<T>(index: usize, last: &[Option<Last<'_, T>>], graph: &Graph) -> bool {
    let position = |task: usize| last[task].as_ref().map(|last| last.position);
    let own = position(index);
    graph.dependencies.of(index).iter().all(|task| position(*task).is_some_and(|earlier| Some(earlier) < own))
}
