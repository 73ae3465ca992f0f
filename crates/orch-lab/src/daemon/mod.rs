//! The lab in a process of its own, which outlives whoever brought it up: started, asked and ended from outside.

mod ask;
mod control;
mod down;
mod ports;
mod process;
mod up;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use orch_model::{HostName, UserName};
use orch_providers::local::Setup;
use orch_run::StateDir;

use crate::lab_error::LabError;
use crate::lab_file::{self, LabFile, LabFolder};
use crate::settings::LabSettings;
use crate::told::told;
pub use ask::{Request, ask, status};
pub use control::{HostStatus, LabStatus};
pub use down::down;
pub use up::{Up, up};

/// The word that the command line of `orch` has for the lab's own process.
pub const HELPER: &str = "__lab";

/// What a lab says of itself, whether or not it runs.
pub fn read(folder: &Path) -> Result<LabFile, LabError> {
    let folder = LabFolder::at(folder);
    lab_file::read(&folder.file())?.ok_or_else(|| LabError::None(folder.path().to_owned()))
}

/// The machines behind a host, for those who listen to them in their own network; nothing where they are paper.
pub fn machines_of(folder: &Path, host: &HostName, program: &Path) -> Option<Setup> {
    let folder = LabFolder::at(folder);
    let settings: LabSettings = lab_file::read(&folder.settings()).ok()??;
    let place = folder.host(host);
    (!settings.paper).then(|| Setup {
        host: host.clone(),
        state: StateDir::locate(Some(&place)).expect("a folder that is named is found"),
        site: place.clone(),
        user: UserName::root(),
        program: program.to_owned(),
        reach: None,
    })
}

/// Is the lab's own process, for the folder that the arguments name, until it is told to end.
pub fn helper(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(folder) = args.into_iter().next().map(PathBuf::from) else {
        let _ = writeln!(io::stderr(), "this is for orch itself");
        return ExitCode::FAILURE;
    };
    match process::serve(&LabFolder::at(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{}", told(&error));
            ExitCode::FAILURE
        }
    }
}
