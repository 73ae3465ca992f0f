//! The way to a folder of the node, one step at a time.
//!
//! Each step opens a name in the folder that is held open already, so nobody can exchange what was walked through. A
//! link is followed only where nobody but root could have put it, and never out of the node's root. Where the way leads
//! is known at its end, so that what must not be written is recognised under any name.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat};
use rustix::io::Errno;

use super::{Folder, Node};
use crate::error::ApplyError;

/// As many as the kernel follows.
pub(super) const MOST_LINKS: u32 = 40;

impl Node {
    /// Opens a folder; nothing where it is not there.
    pub(crate) fn folder(&self, path: &Path) -> Result<Option<Folder>, ApplyError> {
        self.walk(path, None)
    }

    /// Opens a folder, and makes it and what is above it where they are not there.
    pub(crate) fn make_folder(&self, path: &Path, mode: u32) -> Result<Folder, ApplyError> {
        self.make_folder_where(path, mode, &|_| Ok(()))
    }

    /// The same, but makes a folder only where `may` has nothing against its place, all links followed.
    pub(crate) fn make_folder_where(&self, path: &Path, mode: u32, may: &May) -> Result<Folder, ApplyError> {
        let folder = self.walk(path, Some(Make { mode: Mode::from_raw_mode(mode), may }))?;
        Ok(folder.expect("a walk that makes what is missing arrives"))
    }

    fn walk(&self, path: &Path, make: Option<Make<'_>>) -> Result<Option<Folder>, ApplyError> {
        let mut walk = Walk { node: self, wanted: path, trail: Vec::new(), links: 0, make };
        if !walk.follow(path)? {
            return Ok(None);
        }
        walk.folder().map(Some)
    }
}

/// Says what is against making a folder at a place.
type May = dyn Fn(&Path) -> Result<(), ApplyError>;

/// How what is missing is made.
#[derive(Clone, Copy)]
struct Make<'a> {
    mode: Mode,
    may: &'a May,
}

struct Walk<'a> {
    node: &'a Node,
    wanted: &'a Path,
    trail: Vec<(OsString, OwnedFd)>,
    links: u32,
    make: Option<Make<'a>>,
}

impl Walk<'_> {
    /// Walks on along `path`. Whether there is such a way.
    fn follow(&mut self, path: &Path) -> Result<bool, ApplyError> {
        for part in path.components() {
            match part {
                Component::RootDir => self.trail.clear(),
                Component::ParentDir => drop(self.trail.pop()),
                Component::Normal(name) => {
                    if !self.enter(name)? {
                        return Ok(false);
                    }
                }
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(true)
    }

    fn enter(&mut self, name: &OsStr) -> Result<bool, ApplyError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match openat(self.here(), name, flags, Mode::empty()) {
            Err(Errno::NOENT) => match self.make {
                None => return Ok(false),
                Some(make) => self.make(name, make)?,
            },
            found => found.map_err(self.failed("open"))?,
        };
        let stat = fstat(&found).map_err(self.failed("look at"))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.trail.push((name.into(), found)),
            FileType::Symlink => return self.follow_link(name),
            _ => return Err(self.refused(name, "it is not a folder")),
        }
        Ok(true)
    }

    fn make(&self, name: &OsStr, make: Make<'_>) -> Result<OwnedFd, ApplyError> {
        (make.may)(&self.path().join(name))?;
        match mkdirat(self.here(), name, make.mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(self.failed("make")(error)),
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.here(), name, flags, Mode::empty()).map_err(self.failed("open"))
    }

    fn follow_link(&mut self, name: &OsStr) -> Result<bool, ApplyError> {
        if !self.folder()?.trusts_link(name)? {
            return Err(self.refused(name, "it is a link that somebody other than root could have put there"));
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(self.refused(name, "it leads through too many links"));
        }
        let target = readlinkat(self.here(), name, Vec::new()).map_err(self.failed("read the link"))?;
        self.follow(Path::new(&OsString::from_vec(target.into_bytes())))
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.trail.last().map_or_else(|| self.node.root(), |(_, fd)| fd.as_fd())
    }

    fn path(&self) -> PathBuf {
        Path::new("/").join(self.trail.iter().map(|(name, _)| name).collect::<PathBuf>())
    }

    /// Where the walk has come to.
    fn folder(&self) -> Result<Folder, ApplyError> {
        let fd = self.here().try_clone_to_owned().map_err(self.failed("open"))?;
        Ok(Folder::new(fd, self.path(), self.node.trusted))
    }

    fn failed<E: Into<std::io::Error>>(&self, verb: &'static str) -> impl FnOnce(E) -> ApplyError + use<E> {
        ApplyError::file(verb, self.wanted)
    }

    fn refused(&self, name: &OsStr, why: &str) -> ApplyError {
        ApplyError::refused(&self.path().join(name), why)
    }
}
