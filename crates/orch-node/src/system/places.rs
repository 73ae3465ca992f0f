//! Where a NixOS system has its things on a node, and what is read there.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use orch_model::{Digest, StorePath};

use super::error::SystemError;
use crate::node::Node;
use crate::state::start_of;

/// What lasts as long as a node is up: who watches, who has the node, what was said to the watcher.
const RUN: &str = "/run/orch-rollout";
const STATE: &str = "/var/lib/orch";
const PROFILES: &str = "/nix/var/nix/profiles";
const ROOTS: &str = "/nix/var/nix/gcroots";
/// Written by our own init at each start: it is the same process before and after it starts the node anew.
const START: &str = "/run/orch/start";

/// As many as the kernel follows.
const MOST_LINKS: u32 = 40;

/// The paths of a node.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    root: PathBuf,
}

impl Places {
    pub(crate) fn of(node: &Node) -> Self {
        Self { root: node.outside("/".as_ref()) }
    }

    /// A path of the node, for this process.
    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The system that runs, all links followed.
    pub(crate) fn running(&self) -> Option<String> {
        self.resolve("/run/current-system")
    }

    /// The system that was booted.
    pub(crate) fn booted(&self) -> Option<String> {
        self.resolve("/run/booted-system")
    }

    /// Where a path of the node leads to; nothing where it leads nowhere. In a tree of files, no link leads out of it.
    pub(super) fn resolve(&self, path: impl AsRef<Path>) -> Option<String> {
        if self.root == Path::new("/") {
            return path.as_ref().canonicalize().ok()?.into_os_string().into_string().ok();
        }
        let mut path = path.as_ref().to_path_buf();
        for _ in 0..MOST_LINKS {
            match fs::read_link(self.at(&path)) {
                // One that is absolute takes the place of all before it.
                Ok(target) => path = path.parent()?.join(target),
                Err(_) => return self.at(&path).exists().then(|| path.display().to_string()),
            }
        }
        None
    }

    /// Where the profile leads to.
    pub(super) fn default_by_profile(&self) -> Option<String> {
        self.resolve(Path::new(PROFILES).join("system"))
    }

    /// The system of a generation, by the name of its link.
    pub(super) fn generation(&self, link: &str) -> Option<String> {
        self.resolve(Path::new(PROFILES).join(link))
    }

    pub(super) fn profiles(&self) -> PathBuf {
        self.at(PROFILES)
    }

    pub(super) fn profile(&self) -> PathBuf {
        self.at(PROFILES).join("system")
    }

    pub(super) fn roots(&self) -> PathBuf {
        self.at(ROOTS)
    }

    pub(super) fn store(&self) -> PathBuf {
        self.at("/nix/store")
    }

    /// A file that lasts, by its name.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.at(STATE).join(name)
    }

    /// A file that lasts as long as the node is up, by its name.
    pub(super) fn passing(&self, name: &str) -> PathBuf {
        self.at(RUN).join(name)
    }

    /// Makes the folder of what lasts as long as the node is up.
    pub(super) fn make_passing(&self) -> Result<(), SystemError> {
        let path = self.at(RUN);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(SystemError::file("make", &path))
    }

    /// By what this boot of the node is told from every other. The kernel's own mark is not enough: machines in namespaces
    /// share it with the computer that they are on.
    pub(super) fn boot(&self) -> String {
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let kernel = read("/proc/sys/kernel/random/boot_id".into());
        let first = start_of(1).unwrap_or_default();
        Digest::of(&(kernel.trim(), first, read(self.at(START)))).short()
    }
}

/// Writes down that the node starts anew, which only its init can do.
pub(crate) fn note_start() -> io::Result<()> {
    if let Some(folder) = Path::new(START).parent() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    }
    fs::write(START, jiff::Timestamp::now().to_string())
}

/// Whether the first process of this node is our own init.
pub(super) fn has_our_init() -> bool {
    Path::new(START).exists()
}

/// Whether a path that was read is this system.
pub(super) fn is(read: Option<&str>, system: &StorePath) -> bool {
    read == Some(system.as_str())
}
