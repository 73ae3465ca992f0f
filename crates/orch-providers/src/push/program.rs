//! The program that configures a node, and how it gets there.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use orch_run::{Ended, Target, TransportError};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::remote::{Remote, RunAs};

/// The folders on a node that hold programs brought there; readable by root alone.
const FOLDERS: [&str; 2] = ["/var/lib/orch", "/var/lib/orch/bin"];

/// What a shell, `env` and `sudo` in between answer for a program that is not there.
pub(super) const NOT_FOUND: i32 = 127;

/// How long one small step of bringing the program may take.
const SMALL_STEP: Duration = Duration::from_secs(20);

/// How long the bytes of the program may take.
const BYTES: Duration = Duration::from_mins(5);

/// The program that configures a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// It is on the node, at this path.
    There(String),
    /// It is brought there when it is not there yet.
    Upload(Arc<Binary>),
}

/// A program of the driver's that is brought to nodes, read when the first of them needs it.
#[derive(Debug)]
pub struct Uploaded {
    file: PathBuf,
    read: OnceLock<Arc<Binary>>,
}

impl Uploaded {
    /// The program in this file.
    pub const fn of(file: PathBuf) -> Self {
        Self { file, read: OnceLock::new() }
    }

    /// The program; in words, why it cannot be read.
    pub fn program(&self) -> Result<Program, String> {
        if let Some(binary) = self.read.get() {
            return Ok(Program::Upload(Arc::clone(binary)));
        }
        let unread =
            |error| format!("the program for it cannot be read from `{}`: {error}", self.file.display());
        let binary = Arc::new(Binary::read(&self.file).map_err(unread)?);
        Ok(Program::Upload(Arc::clone(self.read.get_or_init(|| binary))))
    }
}

/// An `orch-node` for a node's kind of machine.
#[derive(PartialEq, Eq)]
pub struct Binary {
    bytes: Vec<u8>,
    /// Where it lies on a node: named by what is in it, so that what is there is never another one.
    path: String,
}

impl Binary {
    /// The program with these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        let digest = Sha256::digest(&bytes);
        let short = digest[..8].iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes any text");
            text
        });
        Self { bytes, path: format!("{}/orch-node-{short}", FOLDERS[1]) }
    }

    /// The program in this file of the driver's.
    pub fn read(file: &Path) -> io::Result<Self> {
        fs::read(file).map(Self::new)
    }
}

impl std::fmt::Debug for Binary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Binary({}, {} bytes)", self.path, self.bytes.len())
    }
}

impl Program {
    /// Where it is on the node, or will be.
    pub fn path(&self) -> &str {
        match self {
            Self::There(path) => path,
            Self::Upload(binary) => &binary.path,
        }
    }

    /// The command line that runs it.
    pub(crate) fn argv(&self, args: &[&str]) -> Vec<String> {
        std::iter::once(self.path()).chain(args.iter().copied()).map(str::to_owned).collect()
    }

    /// Runs it as root, and brings it there first where a run shows that it is missing.
    pub(crate) async fn run(
        &self,
        remote: &dyn Remote,
        target: &Target,
        args: &[&str],
        input: &[u8],
        limit: Duration,
    ) -> Result<Ended, TransportError> {
        let command = self.argv(args);
        let ended = remote.run(&command, RunAs::Root, input, limit).await?;
        match self {
            Self::Upload(binary) if ended.code == Some(NOT_FOUND) => {
                target.progress.say("bringing the program");
                binary.bring(remote, target).await?;
                remote.run(&command, RunAs::Root, input, limit).await
            }
            _ => Ok(ended),
        }
    }
}

impl Binary {
    /// Puts it in its place whole, or not at all: the bytes go to a draft of our own, and only a connection that held
    /// until they were all there gives it its name.
    async fn bring(&self, remote: &dyn Remote, target: &Target) -> Result<(), TransportError> {
        let draft = format!("{}.draft-{}", self.path, Uuid::new_v4().simple());
        let brought = self.draft(remote, target, &draft).await;
        if brought.is_err() {
            let discard = words(&["rm", "-f", "--", &draft]);
            // What is left of a draft is removed by the next one who brings something.
            let _ = remote.run(&discard, RunAs::Root, &[], SMALL_STEP).await;
        }
        brought
    }

    async fn draft(&self, remote: &dyn Remote, target: &Target, draft: &str) -> Result<(), TransportError> {
        let node = Steps { remote, target };
        let [outer, inner] = FOLDERS;
        node.step(&["install", "-d", "-m", "0700", outer, inner], &[], SMALL_STEP).await?;
        // Drafts of drivers that were cut off an hour ago or more. A node without `find` keeps them.
        let old = words(&["find", inner, "-name", "*.draft-*", "-mmin", "+60", "-delete"]);
        remote.run(&old, RunAs::Root, &[], SMALL_STEP).await?;
        // Not by way of /dev/stdin, which cannot be opened where the server gives its programs sockets.
        let into = format!("of={draft}");
        node.step(&["dd", "bs=64k", "status=none", &into], &self.bytes, BYTES).await?;
        node.step(&["chmod", "0755", draft], &[], SMALL_STEP).await?;
        node.step(&["mv", "-f", "-T", "--", draft, &self.path], &[], SMALL_STEP).await
    }
}

/// The node to which a program is brought, step by step.
struct Steps<'a> {
    remote: &'a dyn Remote,
    target: &'a Target,
}

impl Steps<'_> {
    /// One step, which must succeed.
    async fn step(&self, argv: &[&str], input: &[u8], limit: Duration) -> Result<(), TransportError> {
        let ended = self.remote.run(&words(argv), RunAs::Root, input, limit).await?;
        if ended.code == Some(0) {
            return Ok(());
        }
        Err(TransportError::Failed {
            node: self.target.identity.clone(),
            why: format!("the program that configures it could not be brought there: `{}` failed", argv[0]),
            evidence: super::answer::tail(&ended.stderr),
        })
    }
}

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().copied().map(str::to_owned).collect()
}
