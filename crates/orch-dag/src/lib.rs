#![doc = include_str!("../README.md")]
//!
//! # How the crate is laid out
//!
//! A [`Plan`] is tasks and what they wait for; [`Runner`] checks it (`graph`), and hands it to workers
//! (`scheduler`, `worker`) which decide (`decision`), try (`attempt`) and write down (`journal`) one task at a time.
//! What comes out is a [`Report`]. The engine knows nothing of what a task does: it has no commands, no shell, no
//! network, and it prints nothing.

mod attempt;
mod caught;
mod context;
mod control;
mod decision;
mod explain;
mod graph;
mod guard;
mod hooks;
pub mod journal;
mod outcome;
mod plan;
mod problem;
mod report;
mod results;
mod retry;
mod run;
mod runner;
mod scheduler;
mod seconds;
mod status;
mod strategy;
mod task;
mod task_error;
mod task_report;
mod worker;

pub use context::Context;
pub use control::Control;
pub use hooks::Hooks;
pub use journal::{Entry, FileJournal, Journal, MemoryJournal, Resume};
pub use outcome::{HostStatus, Hosts, Outcome};
pub use plan::Plan;
pub use problem::{PlanError, Problem};
pub use report::Report;
pub use results::Results;
pub use retry::Retry;
pub use runner::Runner;
pub use status::{Failure, SkipReason, Status};
pub use strategy::OnError;
pub use task::{Dependency, Task, TaskId};
pub use task_error::TaskError;
pub use task_report::TaskReport;

/// A boxed future, as object-safe asynchronous traits return it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
