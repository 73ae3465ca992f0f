//! One lock per host, so that two runs of this driver never interleave on a node.
//!
//! The lock is the kernel's (`flock`): it is gone the moment its holder is, however that came about, and there is
//! nothing to clean up. The file's text only names the holder, for people. Reading the world takes no lock.
//!
//! Another driver machine has locks of its own. Between drivers, what is unique at the provider decides: marks, names
//! and ids.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use orch_model::{HostName, SiteName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::journal::RunId;
use crate::state_dir::{StateDir, StateDirError};

/// The locks of every host of a run, held until this is dropped or the process ends.
#[derive(Debug)]
pub struct HostLocks {
    run: RunId,
    hosts: BTreeSet<HostName>,
    _locks: Vec<Lock>,
}

/// One lock. It is given back by word, and not only by closing the file: a process that is being started has a copy of
/// everything that is open until it runs its own program, and would keep the lock for that long.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Where it cannot be given back, closing the file does.
        let _ = self.0.unlock();
    }
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The run.
    pub run: RunId,
    /// What it does, such as `create nested-test`.
    pub doing: String,
    /// Its process.
    pub pid: u32,
    /// When that process started, in the kernel's ticks: with the pid it names one process for ever.
    pub started: u64,
    /// Since when it holds the lock.
    pub since: Timestamp,
}

/// A lock cannot be had.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another run has it.
    #[error("host `{host}` is in use{}", said_by(holder.as_deref()))]
    Held {
        /// The host.
        host: HostName,
        /// Who, where that could be read.
        holder: Option<Box<Holder>>,
    },
    /// The lock's file cannot be used.
    #[error("the lock of host `{host}` cannot be taken")]
    File {
        /// The host.
        host: HostName,
        /// Why not.
        source: io::Error,
    },
    /// There is no folder for locks.
    #[error(transparent)]
    StateDir(#[from] StateDirError),
}

impl LockError {
    /// What to try next.
    pub fn hint(&self) -> String {
        match self {
            Self::Held { holder: Some(holder), .. } if !holder.is_alive() => {
                format!("process {} has ended, but one that it started still holds the lock", holder.pid)
            }
            Self::Held { .. } => "wait until it is done; `orch plan` needs no lock".into(),
            Self::File { .. } => "see whether the state directory can be written".into(),
            Self::StateDir(error) => error.hint().into(),
        }
    }
}

impl HostLocks {
    /// Takes the locks of all hosts, in the order of their names so that no two runs can wait for each other. Does not
    /// wait: a lock that is held is an error that names its holder.
    pub fn take(
        state: &StateDir,
        site: &SiteName,
        hosts: &BTreeSet<HostName>,
        run: &RunId,
        doing: &str,
    ) -> Result<Self, LockError> {
        let folder = state.make_locks()?;
        let holder = Holder {
            run: run.clone(),
            doing: doing.into(),
            pid: std::process::id(),
            started: start_of(std::process::id()).unwrap_or_default(),
            since: Timestamp::now(),
        };
        let take = |host: &HostName| take(&folder.join(format!("{site}.{host}.lock")), host, &holder);
        let locks = hosts.iter().map(take).collect::<Result<_, _>>()?;
        Ok(Self { run: run.clone(), _locks: locks, hosts: hosts.clone() })
    }

    /// The run that they were taken for.
    pub(crate) const fn run(&self) -> &RunId {
        &self.run
    }

    pub(crate) const fn hosts(&self) -> &BTreeSet<HostName> {
        &self.hosts
    }
}

fn take(path: &Path, host: &HostName, holder: &Holder) -> Result<Lock, LockError> {
    let failed = |source| LockError::File { host: host.clone(), source };
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).clone();
    let file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = Holder::read(path).map(Box::new);
            return Err(LockError::Held { host: host.clone(), holder });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    let mut lock = Lock(file);
    let text = serde_json::to_vec(holder).map_err(|error| failed(error.into()))?;
    lock.0.set_len(0).and_then(|()| lock.0.write_all(&text)).map_err(failed)?;
    Ok(lock)
}

impl Holder {
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Whether the process that took the lock still runs. A pid that was given to another process does not count.
    pub fn is_alive(&self) -> bool {
        is_alive(self.pid, self.started)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_alive() { "running" } else { "ended" };
        let doing = orch_model::printable(&self.doing);
        write!(f, "{doing} (run {}, process {}, {state}, since {:.0})", self.run, self.pid, self.since)
    }
}

fn said_by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| format!(" by {holder}"))
}

/// Whether the process with this pid is the one that started then.
pub(crate) fn is_alive(pid: u32, started: u64) -> bool {
    start_of(pid) == Some(started)
}

/// When a process started, in clock ticks since boot; `None` where there is no such process.
pub fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).ok()?;
    // The second field is the program's name in parentheses, and may itself hold any character.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    if is_dead { None } else { fields.nth(18)?.parse().ok() }
}
