//! Reading a file of a running machine from outside, without being led astray by what lies in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::process::Process;

/// The longest file that is read.
const LIMIT: u64 = 1 << 20;

/// Reads a file of the machine whose first process this is. Links are followed as the machine itself would follow them.
pub(crate) fn read(init: &Process, path: &str) -> io::Result<String> {
    read_below(&init.proc("root"), path)
}

/// Reads a file below a root, as if that were the root of everything.
pub(crate) fn read_below(root: &Path, path: &str) -> io::Result<String> {
    let root = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file = File::from(openat2(root, path, how, Mode::empty(), within)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a file"));
    }
    let mut text = String::new();
    file.take(LIMIT).read_to_string(&mut text)?;
    Ok(text)
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
