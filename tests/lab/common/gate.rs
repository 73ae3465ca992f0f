//! A gate that a node's configuration waits at, so that something can be done to the node or its driver meanwhile.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use super::Lab;

/// Keeps a node from applying anything for as long as this lives: somebody else has the right to.
pub(crate) struct Gate {
    lock: File,
}

impl Gate {
    pub(crate) fn hold(lab: &Lab, machine: &str) -> Self {
        let path = lab.root(machine).join("var/lib/orch/apply.lock");
        let lock = File::options().write(true).open(path).unwrap();
        lock.lock().unwrap();
        Self { lock }
    }

    /// Whether somebody waits for the right: then the configuration has arrived, and nothing is done about it yet.
    pub(crate) fn is_waited_at(&self) -> bool {
        let found = self.lock.metadata().unwrap();
        // With its device: the disks of all machines are made from one image, and number their files alike.
        let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
        let name = format!(" {major:02x}:{minor:02x}:{} ", found.ino());
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains("-> FLOCK") && line.contains(&name))
    }
}
