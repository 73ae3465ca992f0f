//! The operator's socket, in the server's own folder, where nobody else can look.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use tokio::net::UnixListener;

use crate::folder::ServerFolder;

const NAME: &str = "operator.sock";

impl ServerFolder {
    /// Where the operator asks.
    pub fn socket(&self) -> PathBuf {
        self.path().join(NAME)
    }
}

/// Listens for the operator. What a server that was killed left there is taken away: the caller holds the office.
pub(crate) fn listen(folder: &ServerFolder) -> io::Result<UnixListener> {
    match fs::remove_file(folder.socket()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (path, _held) = connect_path(folder)?;
    UnixListener::bind(path)
}

/// A path to the socket that is short enough for the kernel, wherever the folder is, and what it holds open meanwhile.
pub(crate) fn connect_path(folder: &ServerFolder) -> io::Result<(PathBuf, File)> {
    let held = File::open(folder.path())?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())).join(NAME), held))
}
