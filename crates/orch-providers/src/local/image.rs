//! What a machine is made from.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::archive::Listing;

/// Where a root file system may have its init, in the order in which they are tried.
pub(crate) const INITS: [&str; 5] =
    ["/sbin/init", "/usr/lib/systemd/systemd", "/init", "/nix/var/nix/profiles/system/init", "/bin/init"];
/// Where it may have its SSH server.
pub(crate) const SSH_SERVERS: [&str; 4] =
    ["/usr/sbin/sshd", "/sbin/sshd", "/usr/bin/sshd", "/nix/var/nix/profiles/system/sw/bin/sshd"];
/// Where it has the settings of that.
pub(crate) const SSH_SETTINGS: &str = "/etc/ssh/sshd_config";
/// Where it may have the program by which another account becomes root.
pub(crate) const SUDOS: [&str; 2] = ["/usr/bin/sudo", "/bin/sudo"];

/// What a machine is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    /// This machine's own programs, shared read-only.
    ThisMachine,
    /// A root file system in a folder, with an init of its own.
    Folder(PathBuf),
    /// The same as a tar archive.
    Archive(PathBuf),
}

impl Image {
    /// The image that a host file means by this text; paths are relative to the site.
    pub(crate) fn named(text: &str, site: &Path) -> Result<Self, String> {
        if text == "this-machine" {
            return Ok(Self::ThisMachine);
        }
        let path = site.join(text);
        if path.is_file() {
            return Ok(Self::Archive(path));
        }
        if !path.is_dir() {
            return Err(format!(
                "image `{text}` is neither `this-machine` nor a folder or archive of the site"
            ));
        }
        if INITS.iter().any(|place| is_below(&path, place)) {
            Ok(Self::Folder(path))
        } else {
            Err(format!("image `{text}` has no init: none of {} is there", INITS.join(", ")))
        }
    }

    /// About how many bytes it takes on a disk. What an archive holds is a multiple of it.
    pub(crate) fn weight(&self) -> u64 {
        const UNPACKED: u64 = 3;
        match self {
            Self::ThisMachine => 0,
            Self::Folder(path) => weight_of(path),
            Self::Archive(path) => path.metadata().map_or(0, |about| about.len() * UNPACKED),
        }
    }

    /// Whether machines made from it share this machine's programs.
    pub(crate) fn shares_programs(&self) -> bool {
        *self == Self::ThisMachine
    }
}

/// What a root file system has to come in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaysIn {
    /// An SSH server, with its settings.
    pub(crate) ssh: bool,
    /// A way to become root for another account.
    pub(crate) sudo: bool,
}

impl WaysIn {
    /// Looks at a root file system, or reads an archive from beginning to end.
    pub(crate) fn of(image: &Image) -> io::Result<Self> {
        match image {
            Image::ThisMachine => Ok(Self { ssh: true, sudo: true }),
            Image::Folder(root) => Ok(Self::found(|path| is_below(root, path))),
            Image::Archive(path) => {
                let listing = Listing::of(path)?;
                Ok(Self::found(|path| listing.holds(path)))
            }
        }
    }

    fn found(holds: impl Fn(&str) -> bool) -> Self {
        let has_one_of = |places: &[&str]| places.iter().any(|place| holds(place));
        Self { ssh: has_one_of(&SSH_SERVERS) && holds(SSH_SETTINGS), sudo: has_one_of(&SUDOS) }
    }
}

/// What a tree takes on its disk; what cannot be looked at counts nothing.
fn weight_of(path: &Path) -> u64 {
    const BLOCK: u64 = 512;
    let Ok(about) = path.symlink_metadata() else { return 0 };
    let below = if about.is_dir() {
        path.read_dir().into_iter().flatten().flatten().map(|entry| weight_of(&entry.path())).sum()
    } else {
        0
    };
    about.blocks() * BLOCK + below
}

/// Whether there is something at a path below a root; links are followed as if that were the root of everything.
fn is_below(root: &Path, path: &str) -> bool {
    let how = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat(CWD, root, how | OFlags::DIRECTORY, Mode::empty())
        .and_then(|root| openat2(root, path, how, Mode::empty(), ResolveFlags::IN_ROOT));
    found.is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_text_means_this_machine_a_folder_with_an_init_or_an_archive() {
        let site = tempfile::tempdir().expect("a folder can be made");
        for folder in ["bare", "linked", "whole/usr/lib/systemd"] {
            fs::create_dir_all(site.path().join(folder)).expect("a folder can be made");
        }
        for file in ["whole/usr/lib/systemd/systemd", "root.tar"] {
            fs::write(site.path().join(file), "").expect("a file can be written");
        }
        // What this machine has there does not count.
        symlink("/bin/sh", site.path().join("linked/init")).expect("it can be linked");
        let named = |text: &str| Image::named(text, site.path());
        assert_eq!(named("this-machine"), Ok(Image::ThisMachine));
        assert_eq!(named("whole"), Ok(Image::Folder(site.path().join("whole"))));
        assert_eq!(named("root.tar"), Ok(Image::Archive(site.path().join("root.tar"))));
        for (text, why) in [("bare", "`bare` has no init"), ("linked", "has no init"), ("gone", "is neither")]
        {
            assert!(named(text).is_err_and(|said| said.contains(why)), "{text}");
        }
    }

    #[test]
    fn what_a_folder_lacks_to_come_in_by_is_known() {
        let root = tempfile::tempdir().expect("a folder can be made");
        for folder in ["usr/sbin", "etc/ssh"] {
            fs::create_dir_all(root.path().join(folder)).expect("a folder can be made");
        }
        fs::write(root.path().join("usr/sbin/sshd"), "").expect("a file can be written");
        let ways_in = || WaysIn::of(&Image::Folder(root.path().to_owned())).expect("it can be looked at");
        assert_eq!(ways_in(), WaysIn { ssh: false, sudo: false }, "a server needs its settings");
        fs::write(root.path().join("etc/ssh/sshd_config"), "").expect("a file can be written");
        assert_eq!(ways_in(), WaysIn { ssh: true, sudo: false });
    }
}
