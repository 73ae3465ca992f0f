//! What a machine is made of, precisely enough to see whether anybody touched it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Lab;

/// A machine's first process, its disk, what is written down about it and what it wrote down about itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    init: Option<i32>,
    disk: Option<u64>,
    record: Option<Trace>,
    boot: Option<Trace>,
    complete: Option<Trace>,
}

/// A file, with when it was last written and which it is.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    text: String,
    written: (i64, i64),
    inode: u64,
}

impl Footprint {
    pub(crate) fn of(lab: &Lab, machine: &str) -> Self {
        let folder = lab.machine(machine);
        Self {
            init: lab.init(machine),
            // Not when it was written: a machine that runs writes its logs.
            disk: fs::metadata(folder.join("disk.img")).ok().map(|found| found.ino()),
            record: Trace::of(&folder.join("machine.json")),
            boot: Trace::of(&folder.join("boot.json")),
            complete: Trace::of(&lab.root(machine).join("var/lib/orch/complete.json")),
        }
    }
}

impl Trace {
    fn of(path: &Path) -> Option<Self> {
        let (text, found) = (fs::read_to_string(path).ok()?, fs::metadata(path).ok()?);
        Some(Self { text, written: (found.mtime(), found.mtime_nsec()), inode: found.ino() })
    }
}
