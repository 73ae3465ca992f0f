//! What has ended so far, readable by every task at any time.
//!
//! Each slot is written once, by the worker that ended the task, and never changes again: readers need no lock.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::task_report::TaskReport;

/// Where each name stands in the plan.
pub(crate) type Names = HashMap<Arc<str>, usize>;

/// How the tasks that have ended so far ended.
///
/// A task is certain to find what it depends on, directly or not. Others are there if they happened to end before.
#[derive(Debug)]
pub struct Results<T = ()> {
    names: Names,
    slots: Vec<OnceLock<Arc<TaskReport<T>>>>,
}

impl<T> Results<T> {
    pub(crate) fn new(names: Names) -> Self {
        let slots = std::iter::repeat_with(OnceLock::new).take(names.len()).collect();
        Self { names, slots }
    }

    /// How the task of that name ended; none if it has not, or is not in the plan.
    pub fn get(&self, name: &str) -> Option<&TaskReport<T>> {
        self.at(*self.names.get(name)?).map(Arc::as_ref)
    }

    /// What the task of that name returned; none if it has not succeeded.
    pub fn value(&self, name: &str) -> Option<&T> {
        self.get(name)?.value.as_ref()
    }

    pub(crate) fn at(&self, index: usize) -> Option<&Arc<TaskReport<T>>> {
        self.slots[index].get()
    }

    /// Writes down how a task ended. The first word stands.
    pub(crate) fn set(&self, index: usize, report: Arc<TaskReport<T>>) {
        let _ = self.slots[index].set(report);
    }

    /// All records, in the plan's order.
    pub(crate) fn all(&self) -> Vec<Arc<TaskReport<T>>> {
        self.slots.iter().filter_map(|slot| slot.get().cloned()).collect()
    }
}

/// How the dependencies of one task ended.
#[derive(Debug)]
pub(crate) struct Dependencies<'a, T> {
    pub(crate) results: &'a Results<T>,
    pub(crate) indices: &'a [usize],
}

impl<'a, T> Dependencies<'a, T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a TaskReport<T>> {
        self.indices.iter().filter_map(|index| self.results.at(*index).map(Arc::as_ref))
    }
}
