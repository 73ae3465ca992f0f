//! What a machine is made from.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

/// Where a root file system may have its init, in the order in which they are tried.
pub(crate) const INITS: [&str; 5] =
    ["/sbin/init", "/usr/lib/systemd/systemd", "/init", "/nix/var/nix/profiles/system/init", "/bin/init"];
/// Where it may have its SSH server.
pub(crate) const SSH_SERVERS: [&str; 4] =
    ["/usr/sbin/sshd", "/sbin/sshd", "/usr/bin/sshd", "/nix/var/nix/profiles/system/sw/bin/sshd"];
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
        let folder = Self::Folder(path);
        if folder.may_hold(&INITS) {
            Ok(folder)
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

    /// Whether one of these files is there. An archive may hold anything: what it lacks is seen by the first machine
    /// that is made from it.
    pub(crate) fn may_hold(&self, places: &[&str]) -> bool {
        match self {
            Self::Folder(root) => places.iter().any(|place| is_below(root, place)),
            Self::ThisMachine | Self::Archive(_) => true,
        }
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
    fn what_a_folder_lacks_is_known_and_what_an_archive_lacks_is_not() {
        let root = tempfile::tempdir().expect("a folder can be made");
        fs::create_dir_all(root.path().join("usr/sbin")).expect("a folder can be made");
        fs::write(root.path().join("usr/sbin/sshd"), "").expect("a file can be written");
        let folder = Image::Folder(root.path().to_owned());
        assert!(folder.may_hold(&SSH_SERVERS));
        assert!(!folder.may_hold(&SUDOS));
        assert!(Image::Archive("root.tar".into()).may_hold(&SUDOS));
    }
}
