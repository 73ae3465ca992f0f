//! What the crate promises, by its public face. Time is paused throughout: nothing here really waits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "also the helpers of a test may fail it")]
#![allow(clippy::unused_async, reason = "tasks are asynchronous, also those that wait for nothing")]

mod control;
mod decisions;
mod explaining;
mod hooks;
mod journalling;
mod lines;
mod reports;
mod resuming;
mod retries;
mod scheduling;
mod strategies;
mod support;
mod validation;
