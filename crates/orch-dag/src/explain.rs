//! A plan in words: what would run, in which order, under which conditions.
//!
//! Works for plans that are not valid as well, for that is when one wants to read them.

use std::fmt::{self, Write};

use crate::graph::{self, Graph};
use crate::guard::Guard;
use crate::plan::Plan;
use crate::scheduler::Scheduler;
use crate::task::{Dependency, Task};

impl<T> Plan<T> {
    /// The plan in words. Tasks stand in the order in which one worker would start them, those in a cycle last.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = self.write_explanation(&mut text);
        text
    }

    fn write_explanation(&self, out: &mut String) -> fmt::Result {
        let noun = if self.len() == 1 { "task" } else { "tasks" };
        writeln!(out, "plan `{}`: {} {noun}, on error {}", self.name, self.len(), self.on_error)?;
        for (place, index) in start_order(&graph::resolve(self).graph, self.len()).into_iter().enumerate() {
            let task = &self.tasks[index];
            writeln!(out, "{:>3}. {}", place + 1, task.name)?;
            self.details(task).into_iter().try_for_each(|detail| writeln!(out, "     {detail}"))?;
        }
        Ok(())
    }

    fn details(&self, task: &Task<T>) -> Vec<String> {
        let mut details = Vec::new();
        if !task.dependencies.is_empty() {
            let names: Vec<_> = task.dependencies.iter().map(|wanted| self.dependency_name(wanted)).collect();
            details.push(format!("after {}", names.join(", ")));
        }
        if task.only_if_changed {
            details.push("only if some dependency changed".to_owned());
        }
        details.extend(task.guards.iter().map(|guard| match guard {
            Guard::EvenIfFailed => guard.to_string(),
            guard => format!("only if {guard}"),
        }));
        if task.retry.allows(1) {
            details.push(format!("retry {}", task.retry));
        }
        details.extend(task.timeout.map(|timeout| format!("timeout {timeout:?}")));
        details.extend(task.on_error.map(|on_error| format!("on error {on_error}")));
        details
    }

    fn dependency_name(&self, dependency: &Dependency) -> String {
        match dependency {
            Dependency::Id(id) if id.plan == self.id => self.tasks[id.index].name.to_string(),
            Dependency::Id(_) => "(a task of another plan)".to_owned(),
            Dependency::Name(name) => name.to_string(),
        }
    }
}

fn start_order(graph: &Graph, tasks: usize) -> Vec<usize> {
    let mut scheduler = Scheduler::new(graph, |_| false, None);
    let mut order = Vec::with_capacity(tasks);
    while let Some(task) = scheduler.pop() {
        order.push(task);
        scheduler.complete(task, graph);
    }
    order.extend((0..tasks).filter(|task| scheduler.is_waiting(*task)));
    order
}
