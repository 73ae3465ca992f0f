//! The file that a project is kept in: only its owner reads it, and it is never half written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::state::State;

/// What is kept in a file; nothing, if there is none yet.
pub(super) fn load(path: &Path) -> io::Result<State> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::default()),
        Err(error) => Err(error),
    }
}

pub(super) fn save(path: &Path, state: &State) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec(state).map_err(io::Error::other)?)?;
    file.sync_data()?;
    fs::rename(&draft, path)
}
