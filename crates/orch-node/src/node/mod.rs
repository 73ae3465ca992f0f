//! The node itself, seen through its root folder: nothing that is done by way of a [`Node`] reaches outside of it.

mod folder;
mod walk;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use crate::error::ApplyError;

pub(crate) use folder::{Folder, Found, Owner, Wanted};

/// A node that a configuration is made true on.
#[derive(Debug)]
pub(crate) struct Node {
    root: OwnedFd,
    path: PathBuf,
    /// Whose links are followed: root's, or one's own where an ordinary user works on a tree.
    trusted: u32,
}

impl Node {
    /// The machine that this program runs on, by `/`; or a tree of files that is or becomes the root of a machine, where
    /// what is not a file is left alone, such as the host name that the kernel knows.
    pub(crate) fn at(root: &Path) -> io::Result<Self> {
        let path = root.canonicalize()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self { root, path, trusted: geteuid().as_raw() })
    }

    /// Whether it is the machine that this program runs on, and not a tree of files.
    pub(crate) fn is_real(&self) -> bool {
        self.path == Path::new("/")
    }

    /// Whether files can be given to other accounts. An ordinary user who works on a tree keeps them all.
    pub(crate) fn sets_owners(&self) -> bool {
        self.trusted == 0
    }

    /// Whether files can be given to this account: a node in namespaces of its own may know root's number alone.
    pub(crate) fn knows_id(&self, uid: u32) -> bool {
        let map = std::fs::read_to_string("/proc/self/uid_map");
        !self.sets_owners() || map.map_or(true, |map| maps(&map, uid))
    }

    /// Where a path of the node is for programs of this machine.
    pub(crate) fn outside(&self, path: &Path) -> PathBuf {
        self.path.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether there is something at a path of the node.
    pub(crate) fn has(&self, path: &str) -> bool {
        let Some((folder, name)) = split(Path::new(path)) else { return true };
        self.folder(folder).is_ok_and(|folder| folder.is_some_and(|folder| folder.holds(name)))
    }

    /// Whether a path of the node leads to a file. In a tree of files, no link leads out of it.
    pub(crate) fn is_file(&self, path: &Path) -> bool {
        if self.is_real() {
            return path.is_file();
        }
        let mut path = path.to_path_buf();
        for _ in 0..=walk::MOST_LINKS {
            let Some((above, name)) = split(&path) else { return false };
            let Ok(Some(folder)) = self.folder(above) else { return false };
            match folder.find(name, 0) {
                Ok(Found::File { .. }) => return true,
                Ok(Found::Link(target)) => path = folder.path().join(target),
                _ => return false,
            }
        }
        false
    }

    /// Where a path leads to once the links above it are followed, also where not all of it is there.
    pub(crate) fn place_of(&self, path: &Path) -> Result<PathBuf, ApplyError> {
        for above in path.ancestors().skip(1) {
            if let Some(folder) = self.folder(above)? {
                let rest = path.strip_prefix(above).expect("a path starts with what is above it");
                return Ok(folder.path().join(rest));
            }
        }
        Ok(path.into())
    }

    fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// Whether a map of numbers, as the kernel shows it, holds this one: first inside, first outside, how many.
fn maps(map: &str, id: u32) -> bool {
    let holds = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(count))) = (numbers.next(), numbers.nth(1)) else { return false };
        (first..first + count).contains(&u64::from(id))
    };
    map.lines().any(holds)
}

/// The folder and the last name of a path; nothing for `/`.
pub(crate) fn split(path: &Path) -> Option<(&Path, &std::ffi::OsStr)> {
    Some((path.parent()?, path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::maps;

    #[test]
    fn a_map_of_ids_holds_what_its_lines_span() {
        for (map, id, is_held) in [
            ("         0          0 4294967295\n", 1000, true),
            ("0 1000 1\n", 0, true),
            ("0 1000 1\n", 1000, false),
            ("0 1000 1\n1 100000 65536\n", 1000, true),
            ("", 0, false),
        ] {
            assert_eq!(maps(map, id), is_held, "{map:?} {id}");
        }
    }
}
