//! Who waits for whom, by place in the plan, and what is wrong with it.
//!
//! Edges lie in two flat vectors, not in one vector per task: memory stays linear and close together.

use std::collections::HashSet;
use std::sync::Arc;

use crate::plan::Plan;
use crate::problem::Problem;
use crate::results::Names;
use crate::task::{Dependency, Task};

/// For each task a list of others.
#[derive(Debug)]
pub(crate) struct Edges {
    offsets: Vec<usize>,
    targets: Vec<usize>,
}

impl Edges {
    pub(crate) fn of(&self, task: usize) -> &[usize] {
        &self.targets[self.offsets[task]..self.offsets[task + 1]]
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The same edges, seen from their other end.
    fn reversed(&self) -> Self {
        let mut offsets = vec![0; self.offsets.len()];
        for target in &self.targets {
            offsets[target + 1] += 1;
        }
        for task in 0..self.len() {
            offsets[task + 1] += offsets[task];
        }
        let mut free = offsets.clone();
        let mut targets = vec![0; self.targets.len()];
        for task in 0..self.len() {
            for target in self.of(task) {
                targets[free[*target]] = task;
                free[*target] += 1;
            }
        }
        Self { offsets, targets }
    }
}

/// Who waits for whom.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) dependencies: Edges,
    pub(crate) dependents: Edges,
    /// All tasks, each after what it depends on. Of no meaning if there are cycles.
    pub(crate) order: Vec<usize>,
}

/// A plan with its names looked up, and all that is wrong with it. Edges that lead nowhere are left out.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) names: Names,
    pub(crate) graph: Graph,
    pub(crate) problems: Vec<Problem>,
}

pub(crate) fn resolve<T>(plan: &Plan<T>) -> Resolved {
    let mut problems = Vec::new();
    let names = names(&plan.tasks, &mut problems);
    let mut edges = Edges { offsets: vec![0], targets: Vec::new() };
    for task in &plan.tasks {
        for dependency in &task.dependencies {
            match find(plan, &names, task, dependency) {
                Ok(target) => edges.targets.push(target),
                Err(problem) => problems.push(problem),
            }
        }
        edges.offsets.push(edges.targets.len());
    }
    let Walk { order, cycles, .. } = Walk::through(&edges);
    problems.extend(cycles.into_iter().map(|cycle| Problem::Cycle {
        path: cycle.into_iter().map(|task| plan.tasks[task].name.clone()).collect(),
    }));
    let graph = Graph { dependents: edges.reversed(), dependencies: edges, order };
    Resolved { names, graph, problems }
}

fn names<T>(tasks: &[Task<T>], problems: &mut Vec<Problem>) -> Names {
    let mut names = Names::with_capacity(tasks.len());
    let mut repeated = HashSet::new();
    for (index, task) in tasks.iter().enumerate() {
        if names.contains_key(&task.name) {
            if repeated.insert(task.name.clone()) {
                problems.push(Problem::DuplicateName { task: task.name.clone() });
            }
        } else {
            names.insert(task.name.clone(), index);
        }
    }
    names
}

fn find<T>(plan: &Plan<T>, names: &Names, task: &Task<T>, wanted: &Dependency) -> Result<usize, Problem> {
    match wanted {
        Dependency::Id(id) if id.plan == plan.id => Ok(id.index),
        Dependency::Id(_) => Err(Problem::ForeignDependency { task: task.name.clone() }),
        Dependency::Name(name) => names.get(name).copied().ok_or_else(|| Problem::UnknownDependency {
            task: task.name.clone(),
            dependency: Arc::clone(name),
        }),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

/// A depth-first walk from each task to what it waits for. Not recursive: a chain may be as long as the plan.
struct Walk<'a> {
    edges: &'a Edges,
    marks: Vec<Mark>,
    /// The tasks between the beginning and where the walk stands, each with how many of its edges were taken.
    stack: Vec<(usize, usize)>,
    in_cycle: Vec<bool>,
    order: Vec<usize>,
    cycles: Vec<Vec<usize>>,
}

impl<'a> Walk<'a> {
    fn through(edges: &'a Edges) -> Self {
        let (marks, in_cycle) = (vec![Mark::New; edges.len()], vec![false; edges.len()]);
        let (stack, order, cycles) = (Vec::new(), Vec::with_capacity(edges.len()), Vec::new());
        let mut walk = Self { edges, marks, stack, in_cycle, order, cycles };
        for task in 0..edges.len() {
            walk.enter(task);
            while let Some((task, taken)) = walk.stack.pop() {
                walk.step(task, taken);
            }
        }
        walk
    }

    fn enter(&mut self, task: usize) {
        if self.marks[task] == Mark::New {
            self.marks[task] = Mark::Open;
            self.stack.push((task, 0));
        }
    }

    fn step(&mut self, task: usize, taken: usize) {
        let Some(next) = self.edges.of(task).get(taken) else {
            self.marks[task] = Mark::Done;
            self.order.push(task);
            return;
        };
        self.stack.push((task, taken + 1));
        if self.marks[*next] == Mark::Open {
            self.note_cycle(*next);
        }
        self.enter(*next);
    }

    /// The stack from `first` on is a cycle. One per first task is enough: a knot has more cycles than tasks.
    fn note_cycle(&mut self, first: usize) {
        if self.in_cycle[first] {
            return;
        }
        let members = self.stack.iter().map(|(task, _)| *task).skip_while(|task| *task != first);
        let mut path: Vec<usize> = members.collect();
        for task in &path {
            self.in_cycle[*task] = true;
        }
        path.push(first);
        self.cycles.push(path);
    }
}
