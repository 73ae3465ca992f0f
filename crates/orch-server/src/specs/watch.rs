//! Whether files of a site have changed: told by the kernel where it can, and seen by looking where it cannot.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use orch_model::{Digest, FileKind};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use super::SitePlace;

/// What the kernel tells of the folders of a site.
#[derive(Debug)]
pub(super) struct Watch {
    told: OwnedFd,
    /// Whether it tells of all of them.
    pub(super) is_complete: bool,
}

impl Watch {
    /// Has the kernel tell of the folders as they are now; nothing where it cannot. A file counts once it was written to its
    /// end: half of one may make sense, and not the one that was meant.
    pub(super) fn over(place: &SitePlace) -> Option<Self> {
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO;
        let told = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let mut is_complete = true;
        for folder in folders(&place.root).into_iter().chain(folder_of(place.manifest.as_deref())) {
            is_complete &= match inotify::add_watch(&told, &folder, flags) {
                // It is told of when it is made, by the one above it.
                Err(Errno::NOENT) => folder != place.root && folder.starts_with(&place.root),
                // There are only so many for each user.
                watched => watched.is_ok(),
            };
        }
        Some(Self { told, is_complete })
    }

    /// Whether something was told since the last time.
    pub(super) fn has_changed(&mut self) -> bool {
        let mut buffer = [0_u8; 4096];
        let mut has_changed = false;
        while rustix::io::read(&self.told, &mut buffer).is_ok_and(|length| length > 0) {
            has_changed = true;
        }
        has_changed
    }
}

/// How the files of a site look from outside: their names, sizes and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(Digest);

impl Stamp {
    pub(super) fn of(place: &SitePlace) -> Self {
        let mut seen: Vec<(PathBuf, u64, i64, i64, u64)> = Vec::new();
        let mut add = |path: PathBuf| {
            if let Ok(about) = fs::metadata(&path) {
                seen.push((path, about.len(), about.mtime(), about.mtime_nsec(), about.ino()));
            }
        };
        for folder in folders(&place.root) {
            fs::read_dir(folder).into_iter().flatten().flatten().for_each(|entry| add(entry.path()));
        }
        place.manifest.iter().cloned().for_each(add);
        seen.sort();
        Self(Digest::of(&seen))
    }
}

/// The folders that hold files of a site.
fn folders(root: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = FileKind::ALL.map(|kind| root.join(kind.folder())).into();
    let hosts = fs::read_dir(root.join("hosts")).into_iter().flatten().flatten();
    folders.extend(hosts.map(|entry| entry.path()).filter(|path| path.is_dir()));
    add_folders(root.join(orch_secrets::FOLDER), &mut folders);
    folders.sort();
    folders.dedup();
    folders
}

/// Adds a folder and those in it.
fn add_folders(folder: PathBuf, folders: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    // A link is not followed: it may lead back here.
    let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    inner.for_each(|entry| add_folders(entry.path(), folders));
    folders.push(folder);
}

/// The folder that a file is in.
fn folder_of(file: Option<&Path>) -> Option<PathBuf> {
    let folder = file?.parent()?;
    // The parent of a name alone has no name.
    Some(if folder.as_os_str().is_empty() { ".".into() } else { folder.to_owned() })
}
