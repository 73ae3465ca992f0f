//! Who may apply: one at a time. The lock is the kernel's and is gone with its holder; the file's text says who that is.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use orch_model::Digest;
use serde::{Deserialize, Serialize};

use super::{State, is_alive, start_of};
use crate::error::ApplyError;

const NAME: &str = "apply.lock";

/// The right to apply, held until it is dropped and by every process that it was handed to.
#[derive(Debug)]
pub(crate) struct ApplyLock(File);

/// Who has the right to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    pub(crate) started: u64,
    pub(crate) digest: Digest,
}

impl ApplyLock {
    /// Takes it; nothing where somebody else has it.
    pub(crate) fn try_take(state: &State) -> Result<Option<Self>, ApplyError> {
        let (path, file) = open(state, NAME)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(ApplyError::file("lock", &path)(error)),
        }
    }

    /// Waits for it; nothing where somebody else has it for all that time.
    pub(crate) fn wait(state: &State, limit: Duration) -> Result<Option<Self>, ApplyError> {
        if let Some(lock) = Self::try_take(state)? {
            return Ok(Some(lock));
        }
        let (path, file) = open(state, NAME)?;
        let (sender, receiver) = mpsc::channel();
        // The kernel knows no time limit for this wait: another thread waits, and may do so for ever.
        thread::spawn(move || {
            let locked = file.lock().map(|()| Self(file));
            // Nobody listens any more once the limit is over; then the lock is given back here.
            let _ = sender.send(locked);
        });
        match receiver.recv_timeout(limit) {
            Ok(locked) => locked.map(Some).map_err(ApplyError::file("lock", &path)),
            Err(_) => Ok(None),
        }
    }

    /// The lock that this process was given as its standard input.
    pub(crate) fn inherited(state: &State) -> io::Result<Self> {
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (given, meant) = (file.metadata()?, std::fs::metadata(state.path.join(NAME))?);
        if (given.dev(), given.ino()) != (meant.dev(), meant.ino()) {
            return Err(io::Error::other("standard input is not the lock"));
        }
        // The same open file is locked already, so this asks for nothing new. One that is not is locked by it.
        file.try_lock()?;
        Ok(Self(file))
    }

    /// Hands it to a process that is started with it as its standard input.
    pub(crate) fn hand_over(self) -> File {
        self.0
    }

    /// Writes down who has it.
    pub(crate) fn sign(&self, digest: Digest) -> io::Result<()> {
        let pid = std::process::id();
        let holder = Holder { pid, started: start_of(pid).unwrap_or_default(), digest };
        let mut file = &self.0;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&serde_json::to_vec(&holder)?)
    }
}

impl Holder {
    /// Who applies now; nothing where nobody does.
    pub(crate) fn find(state: &State) -> Result<Option<Self>, ApplyError> {
        let (path, mut file) = open(state, NAME)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(ApplyError::file("read", &path))?;
        let holder: Option<Self> = serde_json::from_slice(&text).ok();
        Ok(holder.filter(|holder| is_alive(holder.pid, holder.started)))
    }
}

/// Opens a lock by its name, for everybody who wants it.
pub(super) fn open(state: &State, name: &str) -> Result<(PathBuf, File), ApplyError> {
    let path = state.path.join(name);
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).map_err(ApplyError::file("open", &path))?;
    Ok((path, file))
}
