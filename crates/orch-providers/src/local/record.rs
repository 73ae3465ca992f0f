//! What is written down about a machine, in its own folder: that folder is the machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use orch_model::pull::Enrolment;
use orch_model::{NodeKeys, NodeKind, PublicKey, Size, UserName};
use orch_plan::Marks;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::boot::OWN_MARK;
use super::inside;
use super::net::{Bridge, Place};
use super::process::Process;

/// What a machine is. It is written before anything else of the machine exists, so its marks are there from the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Whose it is.
    pub(crate) marks: Marks,
    /// The machine that it lives inside of, by the name of its folder.
    pub(crate) inside: Option<String>,
    pub(crate) kind: NodeKind,
    pub(crate) image: String,
    pub(crate) size: Size,
    /// Whether it was brought up once; before that it is half made.
    pub(crate) made: bool,
    /// Where it is in the network.
    pub(crate) place: Place,
    /// The network of the machines inside of it.
    pub(crate) children: Bridge,
    /// The SSH host key that it is made with, where it has an SSH server: it is known by that until it has said what its own is.
    pub(crate) host_key: Option<PublicKey>,
    /// Its own keys, once it has said what they are.
    #[serde(default)]
    pub(crate) keys: Option<NodeKeys>,
    /// The account that orch comes in with.
    pub(crate) user: UserName,
    /// The public half of the key that opens that account, where the machine has SSH.
    pub(crate) access: Option<PublicKey>,
    /// Whether it is made from this machine's programs, and so has no init of its own.
    pub(crate) shares_programs: bool,
}

impl Record {
    /// The SSH host keys that it may show: its own, or until that is settled the one that it was made with first.
    pub(crate) fn host_keys(&self) -> Vec<PublicKey> {
        let own = self.keys.as_ref().and_then(|keys| keys.host_key.clone());
        let is_settled = own.is_some() && self.keys.as_ref().is_some_and(|keys| keys.settled);
        let first = self.host_key.clone().filter(|_| !is_settled);
        first.into_iter().chain(own).collect()
    }

    /// Whether it has an SSH server.
    pub(crate) const fn has_ssh(&self) -> bool {
        self.access.is_some()
    }
}

/// One start of a machine. An older or newer `orch` than the one that wrote it must know a running machine again, so
/// nothing but the process itself is insisted on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Boot {
    /// Its first process.
    pub(crate) init: Process,
    /// Whether its root is in place.
    #[serde(default)]
    pub(crate) ready: bool,
    /// The control groups that were made for it.
    #[serde(default)]
    pub(crate) cgroups: Vec<PathBuf>,
}

/// The folder of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The machine's name, and its id.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The machine beside this one with that name.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        Self { path: self.path.with_file_name(name) }
    }

    /// The disk, where it is one with a size.
    pub(crate) fn disk(&self) -> PathBuf {
        self.path.join("disk.img")
    }

    /// Where the root is put together; where there is no disk with a size, the root itself.
    pub(crate) fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    /// What the machine's first process says before it has a log of its own.
    pub(crate) fn console(&self) -> PathBuf {
        self.path.join("console.log")
    }

    /// The private half of its SSH host key.
    pub(crate) fn host_key(&self) -> PathBuf {
        self.path.join("ssh_host_ed25519_key")
    }

    /// Removes the SSH host key that it was made with: it shows its own.
    pub(crate) fn forget_host_key(&self) -> io::Result<()> {
        for path in [self.host_key(), self.host_key().with_extension("pub")] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// What it is given to fetch its configuration with, until it has it.
    pub(crate) fn enrolment(&self) -> PathBuf {
        self.path.join("enrolment.json")
    }

    /// Lays down what it is given to fetch its configuration with.
    pub(crate) fn write_enrolment(&self, enrolment: &Enrolment) -> io::Result<()> {
        write(&self.enrolment(), enrolment)
    }

    /// Takes that away, once the machine has it.
    pub(crate) fn forget_enrolment(&self) -> io::Result<()> {
        match fs::remove_file(self.enrolment()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// What the machine is; an error where there is nothing that says so, or nothing that can be understood.
    pub(crate) fn record(&self) -> io::Result<Record> {
        read(&self.path.join("machine.json"))
    }

    pub(crate) fn write_record(&self, record: &Record) -> io::Result<()> {
        write(&self.path.join("machine.json"), record)
    }

    /// Its last start, where there was one.
    pub(crate) fn boot(&self) -> Option<Boot> {
        read(&self.path.join("boot.json")).ok()
    }

    pub(crate) fn write_boot(&self, boot: &Boot) -> io::Result<()> {
        write(&self.path.join("boot.json"), boot)
    }

    pub(crate) fn forget_boot(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join("boot.json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Its first process, if it runs.
    pub(crate) fn running(&self) -> Option<Process> {
        self.boot().map(|boot| boot.init).filter(Process::is_alive)
    }

    /// Its first process, if it runs and its root is in place. By its own word where nobody else could say so: whoever
    /// started it may have been killed in the very moment before.
    pub(crate) fn in_place(&self) -> Option<Process> {
        let Boot { init, ready, .. } = self.boot().filter(|boot| boot.init.is_alive())?;
        (ready || self.knows_itself(&init)).then_some(init)
    }

    /// Whether what runs has the mark of this machine in its root, where it is put last.
    fn knows_itself(&self, init: &Process) -> bool {
        let uuid = self.record().map(|record| record.marks.uuid.to_string());
        matches!((uuid, inside::read(init, OWN_MARK)), (Ok(uuid), Ok(own)) if own == uuid)
    }

    /// The right to start, stop, change or remove the machine; whoever has it keeps it until it is dropped. It is the
    /// kernel's, and so gone with its holder.
    pub(crate) fn lock(&self) -> io::Result<File> {
        let path = self.path.join("lock");
        // Whoever had it before may have removed the machine, and another may have been made in its place since.
        for _ in 0..1000 {
            let file = lock_file(&path)?;
            wait_for_lock(&file)?;
            if is_there(&file, &path) {
                return Ok(file);
            }
        }
        Err(io::Error::other("the machine comes and goes"))
    }
}

/// A file to be locked, made where it is missing.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Whether the file that is locked is the one that others will find there.
pub(crate) fn is_there(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(locked), Ok(there)) => locked.ino() == there.ino() && locked.dev() == there.dev(),
        _ => false,
    }
}

/// Waits for a lock, and not for ever. Whoever has one is a process with a limit of its own.
pub(crate) fn wait_for_lock(file: &File) -> io::Result<()> {
    const LIMIT: Duration = Duration::from_mins(15);
    const PAUSE: Duration = Duration::from_millis(2);
    let deadline = Instant::now() + LIMIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("it is in use for more than {LIMIT:?}"),
                ));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Writes a whole new file in place of the old one, so that a reader sees one or the other.
fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec_pretty(value)?)?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_a_machine_that_is_removed_gets_the_lock_of_the_next_one_and_not_of_the_last() {
        let host = tempfile::tempdir().expect("a folder can be made");
        let folder = Folder::at(host.path().join("a"));
        fs::create_dir(folder.path()).expect("a folder can be made");
        let held = folder.lock().expect("nobody has it");
        let waiting = thread::spawn({
            let folder = folder.clone();
            move || folder.lock()
        });
        // It makes no difference whether it waits already, so nothing has to be waited for here.
        fs::rename(folder.path(), host.path().join(".gone")).expect("it is ours");
        fs::create_dir(folder.path()).expect("a folder can be made");
        drop(held);
        let lock = waiting.join().expect("it does not panic").expect("there is a machine");
        assert!(is_there(&lock, &folder.path().join("lock")));
        assert!(!is_there(&lock, &host.path().join(".gone/lock")));
        drop(lock);
        fs::remove_dir_all(folder.path()).expect("it is ours");
        assert_eq!(folder.lock().expect_err("it is gone").kind(), io::ErrorKind::NotFound);
    }
}
