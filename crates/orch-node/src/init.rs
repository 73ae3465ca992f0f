//! The first process of a local node: starts what the node must run, reaps, and stops cleanly.

/// Runs until the node is told to stop. Called once the root file system is in place.
pub fn run() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
