//! What of this process's environment no program that it starts may have.

use std::process::Command;

/// The variables that hold identities, or a command line that may.
const TELLING: [&str; 2] = ["SOPS_AGE_KEY", "SOPS_AGE_KEY_CMD"];

/// Keeps the identities of this process from a program that it is about to start: whoever sees that one's variables would
/// have them.
pub fn withhold(command: &mut Command) -> &mut Command {
    for name in TELLING {
        command.env_remove(name);
    }
    command
}
