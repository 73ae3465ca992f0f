//! The `orch-node` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    orch_node::command(std::env::args_os().skip(1))
}
