//! How a whole run ended: every task of the plan, in the plan's order.
//!
//! There is always one, also when the run failed, was stopped or was cancelled.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seconds;
use crate::status::{SkipReason, Status};
use crate::task_report::TaskReport;

/// How a whole run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Report<T = ()> {
    /// The plan's name.
    pub plan: String,
    /// Every task, in the plan's order.
    pub tasks: Vec<Arc<TaskReport<T>>>,
    /// How long this run took.
    #[serde(with = "seconds")]
    pub duration: Duration,
    /// The tasks that had ended in an earlier run and were not run again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub resumed: BTreeSet<Arc<str>>,
    /// Why the journal could not be written, if so. The run stopped there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_error: Option<String>,
}

impl<T> Report<T> {
    /// The task of that name.
    pub fn task(&self, name: &str) -> Option<&TaskReport<T>> {
        self.tasks.iter().map(Arc::as_ref).find(|task| &*task.name == name)
    }

    /// The tasks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &TaskReport<T>> {
        self.tasks.iter().map(Arc::as_ref).filter(|task| task.status.is_failed())
    }

    /// Whether the plan was gone through to its end, nothing failed, and all of it was written down.
    ///
    /// Tasks skipped by their guards are no flaw.
    pub fn is_success(&self) -> bool {
        let fine = |task: &Arc<TaskReport<T>>| match &task.status {
            Status::Skipped(reason) => {
                matches!(reason, SkipReason::NothingChanged | SkipReason::Guard { .. })
            }
            status => status.is_success(),
        };
        self.journal_error.is_none() && self.tasks.iter().all(fine)
    }

    /// One line: `4 tasks: 2 changed, 1 unchanged, 1 skipped · 12.3s`, and how many failed, if any did.
    pub fn summary(&self) -> String {
        let count = |holds: fn(&Status) -> bool| self.tasks.iter().filter(|task| holds(&task.status)).count();
        let total = self.tasks.len();
        let changed = count(|status| *status == Status::Changed);
        let unchanged = count(|status| *status == Status::Unchanged);
        let skipped = count(Status::is_skipped);
        let failed = match count(Status::is_failed) {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let noun = if total == 1 { "task" } else { "tasks" };
        let seconds = self.duration.as_secs_f64();
        format!(
            "{total} {noun}: {changed} changed, {unchanged} unchanged, {skipped} skipped{failed} · {seconds:.1}s"
        )
    }
}

/// One line per task, one per host, then what became of the journal, then the summary.
impl<T> fmt::Display for Report<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tasks.iter().try_for_each(|task| writeln!(f, "{task}"))?;
        if let Some(error) = &self.journal_error {
            writeln!(f, "journal: {error}")?;
        }
        f.write_str(&self.summary())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{Failure, HostStatus};

    fn check(statuses: &[Status], expected: &Expect) {
        let task = |(index, status): (usize, &Status)| {
            let mut task: TaskReport = TaskReport::unrun(format!("t{index}").into(), status.clone());
            if index == 1 {
                task.hosts.insert("alpha".to_owned(), HostStatus::Changed);
                task.attempts = 2;
            }
            Arc::new(task)
        };
        let report = Report {
            plan: "p".to_owned(),
            tasks: statuses.iter().enumerate().map(task).collect(),
            duration: Duration::from_millis(12_340),
            resumed: BTreeSet::new(),
            journal_error: None,
        };
        expected.assert_eq(&report.to_string());
    }

    #[test]
    fn the_summary_counts_each_status_and_shows_failures_only_if_there_are_any() {
        let skipped = Status::Skipped(SkipReason::NothingChanged);
        check(
            &[Status::Changed, Status::Changed, Status::Unchanged, skipped],
            &expect![[r"
                t0: changed
                t1: changed (2 attempts)
                  alpha: changed
                t2: unchanged
                t3: skipped: no dependency changed
                4 tasks: 2 changed, 1 unchanged, 1 skipped · 12.3s"]],
        );
        let failure = Failure::Error { chain: vec!["cannot open".to_owned(), "no such file".to_owned()] };
        check(
            &[Status::Failed(failure)],
            &expect![[r"
                t0: failed: cannot open: no such file
                1 task: 0 changed, 0 unchanged, 0 skipped, 1 failed · 12.3s"]],
        );
    }
}
