//! The small program on a node: fetches its configuration or is given it, makes it true, says what differs, and is the init of local nodes.
//!
//! It knows no provider, needs no runtime and no shell. The `orch-node` binary is a thin face of [`command()`]; `orch`
//! links this library and does the same when it is called by that name.

mod accounts;
mod apply;
mod cancel;
mod command;
mod due_reload;
mod error;
mod first_boot;
mod health;
pub mod init;
mod keys;
mod lines;
mod node;
mod package_manager;
pub mod pull;
mod push;
mod resource;
mod settings_file;
mod signals;
mod ssh_server;
mod state;
mod system;
mod systemd;
mod tool;
mod unseal;
mod vault;
mod worker;

pub use command::command;
#[doc(hidden)]
pub use first_boot::read_user_data;
pub use system::inventory_here as inventory;
