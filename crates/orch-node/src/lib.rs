//! The small program on a node: makes its configuration true, says what differs, and is the init of local nodes.
//!
//! It knows no provider, needs no runtime and no shell. The `orch-node` binary is a thin face of [`command`]; `orch`
//! links this library and does the same when it is called by that name.

mod command;
pub mod init;

pub use command::command;
