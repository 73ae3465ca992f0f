//! A provider whose hosts live in memory, or in one file so that they outlive the process: for tests of everything
//! that stands on providers. It behaves as real ones do where it matters: making a machine takes two moves, with a
//! half-made machine in between; a machine lives on its parent; marks are checked at the moment of the change.

mod faulty;
mod systems;
mod world;

pub use faulty::{Fault, FaultKind, Faulty, kill_this_process};
pub use world::{MemoryProvider, WorldFile};
