//! What is to be done: a fleet, and what is observed of it, to a plan.
//!
//! Every decision is made here and nowhere else: a [`Plan`] is plain data that leaves whoever carries it out nothing
//! to choose. The same fleet and the same observation always give the same plan, byte for byte.
//!
//! The crate is `no_std`: it cannot look at the world, only at what is handed to it.

#![no_std]

extern crate alloc;

mod action;
mod decide;
mod differ;
mod naming;
mod observed;
mod plan;
mod readback;
mod render;
mod selection;
mod staging;

pub use action::{Action, MachineRef, MachineSpec};
pub use decide::plan;
pub use observed::{Abilities, Applied, DiskAbility, HostView, Keys, Machine, MachineState, Marks, Observed};
pub use plan::{Counts, Goal, Leftover, NodePlan, OnNixos, Plan, Verb, Verdict};
pub use readback::{Unconfirmed, confirm};
pub use selection::{Selection, Selector};
pub use staging::{Share, Stages, Staging, Strategy};
