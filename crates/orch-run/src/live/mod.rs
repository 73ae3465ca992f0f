//! What is going on while a run goes on: for people who watch. Nothing is decided by it.

mod board;
mod frame;
mod hooks;

pub use board::{Board, Condition};
pub use frame::{Frame, FrameLine};
pub use hooks::Several;
