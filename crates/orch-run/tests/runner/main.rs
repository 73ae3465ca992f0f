//! What carrying a plan out promises: order, limits, honesty about what was done, and what a failure means.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod batches;
mod blocked;
mod cut_rollback;
mod exit_codes;
mod interrupt;
mod keys;
mod leaks;
mod leases;
mod order;
mod replacing;
mod rollback;
mod told;
mod unprintable;
mod wishes;
