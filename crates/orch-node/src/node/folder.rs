//! A folder of the node that is held open, and what is done by name in it.
//!
//! A file is written as a draft beside its place, brought to the disk, and renamed: at every moment there is the old
//! file or the new one, whole. The draft of a name is always called the same, so what a cut leaves behind is taken away
//! by the next try.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use orch_model::Digest;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, fstatfs, fsync, openat,
    readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::ApplyError;

/// What the kernel calls `tmpfs` and `ramfs`.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// Who owns a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Owner {
    pub(crate) const ROOT: Self = Self { uid: 0, gid: 0 };
}

/// A file as it should be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) content: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) owner: Owner,
}

/// What there is under a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A file, and whether it is known under other names too.
    File {
        content: Vec<u8>,
        mode: u32,
        owner: Owner,
        has_other_names: bool,
    },
    Link(PathBuf),
    Folder,
    Other,
}

/// A folder that is held open.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    /// Whose links are followed, and whose number is root's where owners can be set.
    trusted: u32,
}

impl Folder {
    pub(super) const fn new(fd: OwnedFd, path: PathBuf, trusted: u32) -> Self {
        Self { fd, path, trusted }
    }

    /// Where it is on the node, all links followed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a link in it is one that only those who are trusted could have put there.
    pub(crate) fn trusts_link(&self, name: &OsStr) -> Result<bool, ApplyError> {
        Ok(self.is_closed()? && self.stat(name)?.is_some_and(|link| link.st_uid == self.trusted))
    }

    /// Whether only those who are trusted can put something into it.
    pub(crate) fn is_closed(&self) -> Result<bool, ApplyError> {
        let folder = fstat(&self.fd).map_err(ApplyError::file("look at", &self.path))?;
        Ok(folder.st_uid == self.trusted && folder.st_mode & 0o022 == 0)
    }

    /// Says why somebody other than this owner and those who are trusted could take away what is in it, and put something of
    /// his own there; nothing where nobody could.
    pub(crate) fn is_open_to_strangers(&self, owner: Owner) -> Result<Option<String>, ApplyError> {
        let folder = fstat(&self.fd).map_err(ApplyError::file("look at", &self.path))?;
        let whose = folder.st_uid;
        if ![0, self.trusted, owner.uid].contains(&whose) {
            return Ok(Some(format!("it belongs to {whose}, who is neither root nor the owner")));
        }
        // Where the bit is set, nobody takes away what is another's.
        let is_sticky = folder.st_mode & 0o1000 != 0;
        let is_open = folder.st_mode & 0o022 != 0 && !is_sticky;
        Ok(is_open.then(|| format!("its mode is {:04o}, so others may write to it", folder.st_mode & 0o7777)))
    }

    /// Whether what is in it is in memory, and on no disk.
    pub(crate) fn is_in_memory(&self) -> Result<bool, ApplyError> {
        let system = fstatfs(&self.fd).map_err(ApplyError::file("look at", &self.path))?;
        Ok(u32::try_from(system.f_type).is_ok_and(|kind| IN_MEMORY.contains(&kind)))
    }

    const fn sets_owners(&self) -> bool {
        self.trusted == 0
    }

    /// Whether there is something under a name.
    pub(crate) fn holds(&self, name: &OsStr) -> bool {
        self.stat(name).is_ok_and(|stat| stat.is_some())
    }

    /// Says what there is under a name, and reads at most `limit` bytes where it is a file.
    pub(crate) fn find(&self, name: &OsStr, limit: usize) -> Result<Found, ApplyError> {
        let Some(stat) = self.stat(name)? else { return Ok(Found::Nothing) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.read(name, limit),
            FileType::Symlink => {
                let target =
                    readlinkat(&self.fd, name, Vec::new()).map_err(self.failed("read the link", name))?;
                Ok(Found::Link(OsString::from_vec(target.into_bytes()).into()))
            }
            FileType::Directory => Ok(Found::Folder),
            _ => Ok(Found::Other),
        }
    }

    fn read(&self, name: &OsStr, limit: usize) -> Result<Found, ApplyError> {
        // What is there now may be something else than a moment ago; nothing that could block is waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file: File =
            openat(&self.fd, name, flags, Mode::empty()).map_err(self.failed("open", name))?.into();
        let stat = fstat(&file).map_err(self.failed("look at", name))?;
        // As much room as is needed: where it is a secret, a buffer that grew would leave copies behind that are not wiped.
        let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        let mut content = Vec::with_capacity(limit.min(size.saturating_add(1)));
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        file.take(limit).read_to_end(&mut content).map_err(self.failed("read", name))?;
        let has_other_names = stat.st_nlink > 1;
        Ok(Found::File { content, mode: stat.st_mode & 0o7777, owner: owner_of(&stat), has_other_names })
    }

    /// Says how what is under a name differs from what should be there.
    pub(crate) fn difference(&self, name: &OsStr, wanted: &Wanted<'_>) -> Result<Option<String>, ApplyError> {
        self.compare(name, wanted, |content| (content != wanted.content).then_some("its content differs"))
    }

    /// The same, where `differs` says how what it holds differs.
    pub(crate) fn compare(
        &self,
        name: &OsStr,
        wanted: &Wanted<'_>,
        differs: impl FnOnce(Vec<u8>) -> Option<&'static str>,
    ) -> Result<Option<String>, ApplyError> {
        Ok(match self.find(name, wanted.content.len() + 1)? {
            Found::Nothing => Some("it is not there".into()),
            Found::Link(target) => Some(format!("it is a link to `{}`", target.display())),
            Found::Folder => return Err(self.refused(name, "a folder is in its place")),
            Found::Other => return Err(self.refused(name, "something that is not a file is in its place")),
            Found::File { content, mode, owner, .. } => {
                let words = [
                    differs(content).map(String::from),
                    (mode != wanted.mode).then(|| format!("its mode is {mode:04o}")),
                    (self.sets_owners() && owner != wanted.owner)
                        .then(|| format!("it belongs to {}:{}", owner.uid, owner.gid)),
                ];
                let words: Vec<String> = words.into_iter().flatten().collect();
                (!words.is_empty()).then(|| words.join(", "))
            }
        })
    }

    /// Puts a file in its place, whatever file or link was there.
    pub(crate) fn write(&self, name: &OsStr, wanted: &Wanted<'_>) -> Result<(), ApplyError> {
        self.write_checked(name, wanted, |_| Ok(()))
    }

    /// Puts a file in its place once `check` has found its draft good. The draft is handed over by name.
    pub(crate) fn write_checked(
        &self,
        name: &OsStr,
        wanted: &Wanted<'_>,
        check: impl FnOnce(&OsStr) -> Result<(), ApplyError>,
    ) -> Result<(), ApplyError> {
        let draft = draft_of(name);
        self.remove(&draft)?;
        let done = self
            .draft(&draft, wanted)
            .map_err(self.failed("write", name))
            .and_then(|()| check(&draft))
            .and_then(|()| self.rename(&draft, name));
        if done.is_err() {
            // The error that is told is the first one.
            let _ = self.remove(&draft);
        }
        done
    }

    fn draft(&self, draft: &OsStr, wanted: &Wanted<'_>) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file: File = openat(&self.fd, draft, flags, Mode::RUSR | Mode::WUSR)?.into();
        file.write_all(wanted.content)?;
        if self.sets_owners() {
            fchown(&file, Some(Uid::from_raw(wanted.owner.uid)), Some(Gid::from_raw(wanted.owner.gid)))?;
        }
        // After the owner: a change of owner takes the set-user-id bit away.
        fchmod(&file, Mode::from_raw_mode(wanted.mode))?;
        file.sync_all()
    }

    /// Renames within the folder, over what is there, and brings that to the disk.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), ApplyError> {
        renameat(&self.fd, from, &self.fd, to).map_err(self.failed("replace", to))?;
        self.sync()
    }

    /// Puts a link in its place, whatever file or link was there.
    pub(crate) fn link(&self, name: &OsStr, target: &Path) -> Result<(), ApplyError> {
        let draft = draft_of(name);
        self.remove(&draft)?;
        symlinkat(target, &self.fd, &draft).map_err(self.failed("make the link", name))?;
        self.rename(&draft, name)
    }

    /// Takes away what a cut may have left of a write that was never finished.
    pub(crate) fn remove_draft(&self, name: &OsStr) -> Result<(), ApplyError> {
        self.remove(&draft_of(name))
    }

    /// Takes a file or link away, where there is one.
    pub(crate) fn remove(&self, name: &OsStr) -> Result<(), ApplyError> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.failed("remove", name)(error)),
        }
    }

    /// Opens a file that programs take as a lock, and makes it where it is not there. A link is never followed.
    pub(crate) fn open_lock(&self, name: &OsStr) -> Result<OwnedFd, ApplyError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR).map_err(self.failed("open", name))
    }

    /// The names in it, sorted.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, ApplyError> {
        let failed = |error: Errno| ApplyError::file("list", &self.path)(error);
        let entries = self.reopen().and_then(rustix::fs::Dir::new).map_err(failed)?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name().to_bytes().to_vec();
            if !matches!(name.as_slice(), b"." | b"..") {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> Result<Owner, ApplyError> {
        fstat(&self.fd).map(|stat| owner_of(&stat)).map_err(ApplyError::file("look at", &self.path))
    }

    /// Gives the folder itself to somebody, with these permissions.
    pub(crate) fn give(&self, owner: Owner, mode: u32) -> Result<(), ApplyError> {
        let give = || -> rustix::io::Result<()> {
            let folder = self.reopen()?;
            if self.sets_owners() {
                fchown(&folder, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?;
            }
            fchmod(&folder, Mode::from_raw_mode(mode))
        };
        give().map_err(ApplyError::file("set the owner of", &self.path))
    }

    fn sync(&self) -> Result<(), ApplyError> {
        let synced = self.reopen().and_then(fsync);
        synced.map_err(ApplyError::file("bring to the disk", &self.path))
    }

    /// The same folder, opened for more than passing through.
    fn reopen(&self) -> rustix::io::Result<OwnedFd> {
        openat(&self.fd, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    fn stat(&self, name: &OsStr) -> Result<Option<Stat>, ApplyError> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed("look at", name)(error)),
        }
    }

    fn failed<E: Into<std::io::Error>>(
        &self,
        verb: &'static str,
        name: &OsStr,
    ) -> impl FnOnce(E) -> ApplyError + use<E> {
        ApplyError::file(verb, &self.path.join(name))
    }

    fn refused(&self, name: &OsStr, why: &str) -> ApplyError {
        ApplyError::refused(&self.path.join(name), why)
    }
}

/// The name of a draft: no program that reads a folder of settings takes a name with a dot in front for one.
fn draft_of(name: &OsStr) -> OsString {
    format!(".orch-{}", Digest::of_bytes(name.as_bytes()).short()).into()
}

const fn owner_of(stat: &Stat) -> Owner {
    Owner { uid: stat.st_uid, gid: stat.st_gid }
}
