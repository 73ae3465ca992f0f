//! The machines of a host: a folder for each. Names that begin with a dot are not machines.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::net::{Bridge, Place};
use super::record::{Folder, Record, is_there, lock_file, wait_for_lock};

/// The folder of a host.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

/// A machine, or what lies where one could be.
pub(crate) struct Found {
    pub(crate) folder: Folder,
    /// What it is; nothing where it is not one of ours.
    pub(crate) record: Option<Record>,
}

impl Store {
    pub(crate) const fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Whether there is, or was, any machine.
    pub(crate) fn exists(&self) -> bool {
        self.root.exists()
    }

    /// Where prepared images are kept.
    pub(crate) fn images(&self) -> PathBuf {
        self.root.join(".images")
    }

    /// The folder that a machine of this name has or would have.
    pub(crate) fn folder(&self, name: &str) -> Folder {
        Folder::at(self.root.join(name))
    }

    /// Everything that is there, by name.
    pub(crate) fn list(&self) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        for entry in entries(&self.root)? {
            let name = entry?.file_name();
            if !name.as_encoded_bytes().starts_with(b".") {
                let folder = Folder::at(self.root.join(name));
                let record = match folder.record() {
                    Ok(record) => Some(record),
                    Err(error) if is_of_a_stranger(&error) => None,
                    // Whose it is cannot be told now, which is not the same as nobody's of ours.
                    Err(error) => return Err(error),
                };
                found.push(Found { folder, record });
            }
        }
        found.sort_by_key(|found| found.folder.name());
        Ok(found)
    }

    /// The machine that bears this mark.
    pub(crate) fn bearing(&self, uuid: Uuid) -> io::Result<Option<(Folder, Record)>> {
        let bears = |found: Found| {
            let record = found.record.filter(|record| record.marks.uuid == uuid)?;
            Some((found.folder, record))
        };
        Ok(self.list()?.into_iter().find_map(bears))
    }

    /// Takes a place in the network that nobody has, and puts a machine there that is nothing but its record: the folder
    /// appears with the marks in it, or not at all. `record` says what it is, given its place.
    pub(crate) fn begin(
        &self,
        name: &str,
        inside: Option<&Record>,
        record: impl FnOnce(Place, Bridge) -> Record,
        discard: impl Fn(&Path) -> io::Result<()>,
    ) -> io::Result<Folder> {
        let _lock = self.lock(".places")?;
        self.sweep(discard)?;
        let taken: Vec<Record> = self.list()?.into_iter().filter_map(|found| found.record).collect();
        let bridge = inside.map_or(Bridge::HOST, |parent| parent.children);
        let place = Place::first_free(bridge, |place| taken.iter().any(|other| other.place == place));
        let children = Bridge::first_free(|bridge| taken.iter().any(|other| other.children == bridge));
        let (Some(place), Some(children)) = (place, children) else {
            return Err(io::Error::other("its network is full"));
        };
        let record = record(place, children);
        let draft = Folder::at(self.root.join(format!(".new-{}", record.marks.uuid)));
        remove(draft.path())?;
        make(draft.path())?;
        draft.write_record(&record)?;
        let folder = self.folder(name);
        // An empty folder would be replaced, and it is not ours.
        if folder.path().symlink_metadata().is_ok() {
            remove(draft.path())?;
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(draft.path(), folder.path())?;
        Ok(folder)
    }

    /// Takes a machine's folder away: it is gone at once, and its contents soon after. What an interrupted removal left
    /// goes too.
    pub(crate) fn remove(
        &self,
        folder: &Folder,
        uuid: Uuid,
        discard: impl Fn(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        fs::rename(folder.path(), self.root.join(format!(".gone-{uuid}")))?;
        self.tidy(discard)
    }

    /// Removes what interrupted runs left, and with the last machine everything that was prepared for machines.
    pub(crate) fn tidy(&self, discard: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
        let _lock = self.lock(".places")?;
        self.sweep(&discard)?;
        if !self.list()?.is_empty() {
            return Ok(());
        }
        match discard(&self.root) {
            // Somebody else has come meanwhile, and waits for the lock; the last one of them removes it.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            done => done,
        }
    }

    /// Removes what is half made or half gone. Whoever makes or removes has the lock of the places, and so do we: what lies
    /// there is nobody's any more.
    fn sweep(&self, discard: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
        for entry in entries(&self.root)?.collect::<io::Result<Vec<_>>>()? {
            let name = entry.file_name();
            let begins = |word: &str| name.as_encoded_bytes().starts_with(word.as_bytes());
            if begins(".new-") || begins(".gone-") {
                discard(&entry.path())?;
            }
        }
        Ok(())
    }

    /// A lock of the whole host, held for a moment.
    pub(crate) fn lock(&self, name: &str) -> io::Result<File> {
        // The folder may be tidied away by another process at any moment: while it is made, before the file is in it, and
        // before that is locked.
        for _ in 0..1000 {
            let file = make(&self.root).and_then(|()| lock_file(&self.root.join(name)));
            let file = match file {
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) =>
                {
                    continue;
                }
                file => file?,
            };
            wait_for_lock(&file)?;
            if is_there(&file, &self.root.join(name)) {
                return Ok(file);
            }
        }
        Err(io::Error::other("the host's folder comes and goes"))
    }
}

/// Whether what could not be read is simply not a record of ours.
fn is_of_a_stranger(error: &io::Error) -> bool {
    use io::ErrorKind::{
        InvalidData, IsADirectory, NotADirectory, NotFound, PermissionDenied, UnexpectedEof,
    };
    matches!(
        error.kind(),
        NotFound | NotADirectory | IsADirectory | PermissionDenied | InvalidData | UnexpectedEof
    )
}

/// The entries of a folder; none where there is no folder.
fn entries(path: &Path) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    match fs::read_dir(path) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        Err(error) => Err(error),
    }
}

pub(crate) fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a folder and everything in it; one that is not there is removed already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
