//! What the node keeps of orch under `/var/lib/orch`: the configuration that it has and had, and what became of it.

mod lock;
mod process;
mod run_lock;

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use orch_model::{ApplyReport, ApplyStatus, Config, Digest};
use serde::de::DeserializeOwned;

use crate::error::ApplyError;
use crate::node::{Folder, Node, Owner, Wanted};

pub(crate) use lock::{ApplyLock, Holder};
pub(crate) use process::{is_alive, session_of, start_of};
pub(crate) use run_lock::{Puller, RunLock, Tenure};

const FOLDER: &str = "/var/lib/orch";
const COMPLETE: &str = "complete.json";
const FAILED: &str = "failed.json";
const SPEC: &str = "spec.json";
const PREVIOUS: &str = "spec.prev.json";
const INCOMING: &str = "incoming.json";
const LOG: &str = "apply.log";
/// How long a lock is waited for that nobody holds for longer than a moment.
const PATIENCE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(10);

/// The folder, open.
#[derive(Debug)]
pub(crate) struct State {
    folder: Folder,
    path: PathBuf,
}

impl State {
    /// Opens the folder; nothing where no configuration ever came here.
    pub(crate) fn find(node: &Node) -> Result<Option<Self>, ApplyError> {
        let folder = node.folder(Path::new(FOLDER))?;
        Ok(folder.map(|folder| Self::new(node, folder)))
    }

    /// Opens the folder, and makes it where it is not there.
    pub(crate) fn make(node: &Node) -> Result<Self, ApplyError> {
        let above = Path::new(FOLDER).parent().expect("the folder is in one");
        node.make_folder(above, 0o755)?;
        let folder = node.make_folder(Path::new(FOLDER), 0o700)?;
        Ok(Self::new(node, folder))
    }

    fn new(node: &Node, folder: Folder) -> Self {
        let path = node.outside(folder.path());
        Self { folder, path }
    }

    /// The report of the last apply, however it went.
    pub(crate) fn report(&self) -> Result<Option<ApplyReport>, ApplyError> {
        // Where both are there, by whatever accident, the worse one counts: applying again heals, and looking away does not.
        let failed = self.read_report(FAILED)?;
        failed.map_or_else(|| self.read_report(COMPLETE), |failed| Ok(Some(failed)))
    }

    /// The configuration that was last made true, where the last one was.
    pub(crate) fn applied(&self) -> Result<Option<Digest>, ApplyError> {
        let report = self.report()?.filter(|report| report.status == ApplyStatus::Complete);
        Ok(report.map(|report| report.spec_digest))
    }

    /// Forgets that a configuration was made true: somebody else changes the node.
    pub(crate) fn forget_applied(&self) -> Result<(), ApplyError> {
        self.remove(COMPLETE)
    }

    /// How often this configuration was tried in a row, the next time included.
    pub(crate) fn attempts(&self, digest: Digest) -> Result<u32, ApplyError> {
        let last = self.report()?.filter(|report| report.spec_digest == digest);
        Ok(last.map_or(1, |report| report.attempts.saturating_add(1)))
    }

    /// Keeps a report, and takes the other kind away before: a cut in between leaves none, and never two.
    pub(crate) fn keep(&self, report: &ApplyReport) -> Result<(), ApplyError> {
        let (name, other) = match report.status {
            ApplyStatus::Complete => (COMPLETE, FAILED),
            ApplyStatus::Failed => (FAILED, COMPLETE),
        };
        self.folder.remove(OsStr::new(other))?;
        self.write(name, &to_json(report))
    }

    /// Lays a configuration down for the worker, unless it is the one that the node has.
    pub(crate) fn hand_over(&self, config: &Config) -> Result<(), ApplyError> {
        if self.current(config.digest()).is_some() {
            return Ok(());
        }
        self.write(INCOMING, &to_json(config))
    }

    /// The configuration that was laid down, or that the node has, if it is the one that is meant.
    pub(crate) fn handed_over(&self, digest: Digest) -> Result<Config, ApplyError> {
        if let Some(config) = self.current(digest) {
            return Ok(config);
        }
        let incoming = self.read_config(INCOMING)?.filter(|config| config.digest() == digest);
        incoming.ok_or_else(|| {
            ApplyError::Impossible(format!("no configuration {} was handed over", digest.short()))
        })
    }

    /// The same, which is what the node has from now on.
    pub(crate) fn take_over(&self, digest: Digest) -> Result<Config, ApplyError> {
        if let Some(config) = self.current(digest) {
            return Ok(config);
        }
        let config = self.handed_over(digest)?;
        // Copied and not renamed, so that there is one at every moment.
        if let Some(text) = self.folder.text(OsStr::new(SPEC))? {
            self.write(PREVIOUS, &text)?;
        }
        self.folder.rename(OsStr::new(INCOMING), OsStr::new(SPEC))?;
        Ok(config)
    }

    /// The configuration that the node has, if it is this one. One that cannot be read is no reason to keep a good one
    /// out.
    fn current(&self, digest: Digest) -> Option<Config> {
        self.config().filter(|config| config.digest() == digest)
    }

    /// The log of the worker, empty.
    pub(crate) fn new_log(&self) -> Result<File, ApplyError> {
        let path = self.log_path();
        let mut options = File::options();
        // Appended to, so that what several processes write does not overlap.
        options.append(true).create(true).mode(0o600);
        let log = options.open(&path).map_err(ApplyError::file("open", &path))?;
        log.set_len(0).map_err(ApplyError::file("empty", &path))?;
        Ok(log)
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.path.join(LOG)
    }

    fn read_report(&self, name: &str) -> Result<Option<ApplyReport>, ApplyError> {
        // A report that cannot be read is none: the next apply writes a new one.
        self.read_json(name)
    }

    fn read_config(&self, name: &str) -> Result<Option<Config>, ApplyError> {
        self.read_json(name)
    }

    /// The configuration that the node has, whatever became of it.
    pub(crate) fn config(&self) -> Option<Config> {
        self.read_config(SPEC).ok().flatten()
    }

    /// A file of the folder; nothing where it is not there.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Vec<u8>>, ApplyError> {
        self.folder.text(OsStr::new(name))
    }

    /// Puts a file into the folder that only root reads.
    pub(crate) fn write_json(&self, name: &str, value: &impl serde::Serialize) -> Result<(), ApplyError> {
        self.write(name, &to_json(value))
    }

    /// Puts a file into the folder that only root reads, and that nobody means to change.
    pub(crate) fn write_for_good(&self, name: &str, value: &impl serde::Serialize) -> Result<(), ApplyError> {
        self.put(name, &to_json(value), 0o400)
    }

    /// A file of the folder as what it holds; nothing where it holds something else.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ApplyError> {
        let text = self.text(name)?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// Puts a file into the folder that only root reads, with these permissions.
    pub(crate) fn put(&self, name: &str, content: &[u8], mode: u32) -> Result<(), ApplyError> {
        self.folder.write(OsStr::new(name), &Wanted { content, mode, owner: Owner::ROOT })
    }

    /// The names in the folder, sorted.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, ApplyError> {
        self.folder.names()
    }

    /// Takes a file of the folder away, where it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ApplyError> {
        self.folder.remove(OsStr::new(name))
    }

    /// Where a file of the folder is for programs of this machine.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Waits until nobody else holds the lock of this name, but not for ever, and holds it until it is dropped.
    pub(crate) fn lock(&self, name: &str) -> Result<File, ApplyError> {
        self.lock_within(name, PATIENCE)
    }

    fn lock_within(&self, name: &str, limit: Duration) -> Result<File, ApplyError> {
        let (path, file) = lock::open(self, name)?;
        let deadline = Instant::now() + limit;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(TICK),
                Err(TryLockError::WouldBlock) => {
                    let why = format!("somebody else has held it for {limit:?}");
                    return Err(ApplyError::refused(&path, why));
                }
                Err(TryLockError::Error(error)) => return Err(ApplyError::file("lock", &path)(error)),
            }
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), ApplyError> {
        self.put(name, content, 0o600)
    }
}

fn to_json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what orch defines can be written as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_somebody_keeps_is_not_waited_for_for_ever() {
        let root = tempfile::tempdir().unwrap();
        let state = State::make(&Node::at(root.path()).unwrap()).unwrap();
        let held = state.lock("keys.lock").unwrap();
        let why = state.lock_within("keys.lock", Duration::from_millis(50)).unwrap_err().to_string();
        assert!(why.contains("keys.lock") && why.contains("somebody else has held it for 50ms"), "{why}");
        let waiting = thread::spawn(move || state.lock("keys.lock").map(drop));
        drop(held);
        waiting.join().unwrap().unwrap();
    }
}
