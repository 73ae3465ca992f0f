//! Reading a file of a running machine from outside, without being led astray by what lies in it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::process::Process;

/// What the kernel's own file system for namespaces is known by.
const NSFS: rustix::fs::FsWord = 0x6e73_6673;
/// The longest file that is read.
const LIMIT: u64 = 1 << 20;

/// Reads a file of the machine whose first process this is. Links are followed as the machine itself would follow them.
pub(crate) fn read(init: &Process, path: &str) -> io::Result<String> {
    read_below(&init.proc("root"), path)
}

/// Opens a network that a machine holds at a path. What lies there is the machine's to choose: only a namespace is taken, and
/// never the one that we are in.
pub(crate) fn network(init: &Process, path: &str) -> io::Result<File> {
    let file = open(&init.proc("root"), path)?;
    let refused = || io::Error::new(io::ErrorKind::InvalidData, "what lies there is not the host's network");
    let is_namespace = rustix::fs::fstatfs(&file)?.f_type == NSFS;
    let (held, ours) = (file.metadata()?, std::fs::metadata("/proc/self/ns/net")?);
    if !is_namespace || (held.ino() == ours.ino() && held.dev() == ours.dev()) {
        return Err(refused());
    }
    Ok(file)
}

/// Reads a file below a root, as if that were the root of everything.
pub(crate) fn read_below(root: &Path, path: &str) -> io::Result<String> {
    let file = open(root, path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a file"));
    }
    let mut text = String::new();
    file.take(LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

/// Opens a file below a root, as if that were the root of everything, and never waits for one.
fn open(root: &Path, path: &str) -> io::Result<File> {
    let root = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(openat2(root, path, how, Mode::empty(), within)?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_of_the_machine_never_leads_out_of_it() {
        let root = tempfile::tempdir().expect("a folder can be made");
        fs::write(root.path().join("there"), "inside").expect("it can be written");
        symlink("/there", root.path().join("link")).expect("it can be linked");
        symlink("/etc/passwd", root.path().join("out")).expect("it can be linked");
        symlink("../../../../../etc/passwd", root.path().join("up")).expect("it can be linked");
        assert_eq!(read_below(root.path(), "link").ok().as_deref(), Some("inside"));
        assert!(read_below(root.path(), "out").is_err());
        assert!(read_below(root.path(), "up").is_err());
        assert!(read_below(root.path(), "/").is_err(), "a folder is no file");
    }
}
