//! The command line of `orch-node`.

use std::ffi::OsString;
use std::process::ExitCode;

/// Does what the arguments after the program's name say.
pub fn command(_args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(3)
}
