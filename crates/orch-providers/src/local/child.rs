//! Programs that are run on the way to a machine. They are in a process group of their own: Ctrl-C is for orch, which lets
//! them come to their end.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::HELPER;

/// This program, about to do one piece of work in a process of its own.
pub(crate) fn helper(program: &Path, word: &str, about: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([HELPER, word]).arg(about).stdin(Stdio::null()).process_group(0);
    command
}

/// Runs a program that must end with one of these codes; else what it said is the error.
pub(crate) fn run(command: &mut Command, fine: &[i32]) -> io::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).process_group(0).output();
    let output =
        output.map_err(|error| io::Error::new(error.kind(), format!("`{name}` cannot be run: {error}")))?;
    if output.status.code().is_some_and(|code| fine.contains(&code)) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("`{name}` ended with {}: {}", output.status, said.trim())))
}
