//! Reading a file of a running machine from outside, without being led astray by what lies in it.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::process::Process;

/// What the kernel's own file system for namespaces is known by.
const NSFS: rustix::fs::FsWord = 0x6e73_6673;
/// The longest file that is read.
const LIMIT: u64 = 1 << 20;

/// How much of a log is read, which is its end.
const END: u64 = 64 << 10;

/// Reads a file of the machine whose first process this is. Links are followed as the machine itself would follow them.
pub(crate) fn read(init: &Process, path: &str) -> io::Result<String> {
    whole(&open(&root_of(init)?, path, READING)?)
}

/// Reads a file below a root, as if that were the root of everything.
pub(crate) fn read_below(root: &Path, path: &str) -> io::Result<String> {
    let root = openat(CWD, root, ROOT, Mode::empty())?;
    whole(&open(&root.into(), path, READING)?)
}

/// Reads the end of a log of the machine, whatever was written to it.
pub(crate) fn read_end(init: &Process, path: &str) -> io::Result<String> {
    end_of(open(&root_of(init)?, path, READING)?)
}

/// What lies at a path of the machine.
pub(crate) fn about(init: &Process, path: &str) -> io::Result<Metadata> {
    open(&root_of(init)?, path, OFlags::PATH)?.metadata()
}

/// This computer's own network, which no machine is ever attached to.
pub(crate) struct Outside {
    device: u64,
    inode: u64,
}

impl Outside {
    /// The network that this process is in. To be asked for before it enters another.
    pub(crate) fn look() -> io::Result<Self> {
        let about = std::fs::metadata("/proc/self/ns/net")?;
        Ok(Self { device: about.dev(), inode: about.ino() })
    }

    /// The network that a process is in.
    pub(crate) fn network_of(&self, process: &Process) -> io::Result<File> {
        self.must_not_be(process.open("ns/net", OFlags::RDONLY)?)
    }

    /// A network that a machine holds at a path. What lies there is the machine's to choose, so only a namespace is taken.
    pub(crate) fn network_at(&self, init: &Process, path: &str) -> io::Result<File> {
        self.must_not_be(open(&root_of(init)?, path, READING)?)
    }

    fn must_not_be(&self, file: File) -> io::Result<File> {
        let is_namespace = rustix::fs::fstatfs(&file)?.f_type == NSFS;
        let about = file.metadata()?;
        if is_namespace && (about.dev(), about.ino()) != (self.device, self.inode) {
            return Ok(file);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "what is there is not a network of machines"))
    }
}

fn root_of(init: &Process) -> io::Result<File> {
    init.open("root", ROOT)
}

fn whole(file: &File) -> io::Result<String> {
    let mut text = String::new();
    must_be_file(file)?.take(LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

/// The end of a log. What is written there need not be text, and may be cut in the middle of a letter.
pub(crate) fn end_of(mut file: File) -> io::Result<String> {
    let length = must_be_file(&file)?.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn must_be_file(file: &File) -> io::Result<&File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "not a file"))
}

const ROOT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// For reading what may be something else than a file, and never waiting for it.
const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a file below a root, as if that were the root of everything.
fn open(root: &File, path: &str, how: OFlags) -> io::Result<File> {
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(root, path, how | OFlags::CLOEXEC, Mode::empty(), within)?.into())
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

    #[test]
    fn of_a_log_the_end_is_read_whatever_is_in_it() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("log");
        let log = ["ä".repeat(200_000).into_bytes(), b"\xff at last\n".to_vec()].concat();
        fs::write(&path, &log).expect("it can be written");
        let end = end_of(File::open(&path).expect("it is there")).expect("it can be read");
        assert!(end.ends_with("ä\u{fffd} at last\n") && end.len() < 100_000, "{} bytes", end.len());
        let folder = File::open(folder.path()).expect("it is there");
        assert!(end_of(folder).is_err(), "a folder is no log");
    }

    #[test]
    fn the_network_of_this_computer_is_never_taken_for_one_of_machines() {
        let this = Process::of(std::process::id().cast_signed()).expect("this process is there");
        let outside = Outside::look().expect("it can be looked at");
        assert!(outside.network_of(&this).is_err());
        let elsewhere = Outside { device: outside.device, inode: outside.inode + 1 };
        assert!(elsewhere.network_of(&this).is_ok());
        assert!(elsewhere.network_at(&this, "/etc/passwd").is_err(), "a file is no network");
    }
}
