//! Who fetches for the node: one at a time, because tokens follow each other and each is shown by one. The lock is the
//! kernel's and is gone with its holder; the file's text says who that is.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::lock::open;
use super::{State, is_alive, start_of};
use crate::error::ApplyError;

const NAME: &str = "pull.lock";

/// A holder that was killed while it started its worker leaves the lock to that for a moment, until it is a program of its
/// own. Nobody who lives has signed it then, or somebody is about to.
const AFTERLIFE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(5);

/// The right to fetch, held until it is dropped.
#[derive(Debug)]
pub(crate) struct RunLock(#[expect(dead_code, reason = "it is held, and not looked at")] File);

/// Who has the right to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Puller {
    pub(crate) pid: u32,
    started: u64,
    /// Whether it stays, and so can be told to look again.
    pub(crate) stays: bool,
}

/// For how long somebody fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenure {
    Once,
    Stays,
}

impl RunLock {
    /// Takes it and writes down who has it; nothing where somebody else has it.
    pub(crate) fn try_take(state: &State, tenure: Tenure) -> Result<Option<Self>, ApplyError> {
        let (path, mut file) = open(state, NAME)?;
        let deadline = Instant::now() + AFTERLIFE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(ApplyError::file("lock", &path)(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            if Puller::find(state)?.is_some() || Instant::now() >= deadline {
                return Ok(None);
            }
            thread::sleep(TICK);
        }
        let pid = std::process::id();
        let puller =
            Puller { pid, started: start_of(pid).unwrap_or_default(), stays: tenure == Tenure::Stays };
        let text = serde_json::to_vec(&puller).expect("what orch defines can be written as JSON");
        let signed = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&text));
        signed.map_err(ApplyError::file("write", &path))?;
        Ok(Some(Self(file)))
    }
}

impl Puller {
    /// Who fetches for the node now; nothing where nobody does, or does not say so yet.
    pub(crate) fn find(state: &State) -> Result<Option<Self>, ApplyError> {
        let (path, mut file) = open(state, NAME)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(ApplyError::file("read", &path))?;
        let puller: Option<Self> = serde_json::from_slice(&text).ok();
        Ok(puller.filter(Self::is_alive))
    }

    pub(crate) fn is_alive(&self) -> bool {
        is_alive(self.pid, self.started)
    }
}
