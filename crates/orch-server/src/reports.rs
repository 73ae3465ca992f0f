//! What nodes reported last: a file for each, on disk before the node is told that it arrived. None is kept in memory, so
//! that many nodes cost no more than few.

use std::fs;
use std::io;
use std::path::PathBuf;

use orch_model::pull::NodeResult;
use orch_model::{Identity, Reported};

use crate::files;
use crate::folder::ServerFolder;

/// The reports of all nodes.
#[derive(Debug, Clone)]
pub struct Reports {
    folder: PathBuf,
}

impl Reports {
    /// The reports of this server.
    pub fn of(folder: &ServerFolder) -> Self {
        Self { folder: folder.reports() }
    }

    /// Keeps what a node reported, and numbers it. When this comes back it outlives a power cut.
    pub fn keep(&self, node: &Identity, at: u64, skew: i64, result: NodeResult) -> io::Result<()> {
        files::make_folder(&self.folder)?;
        let number = self.last(node)?.map_or(0, |last| last.number.saturating_add(1));
        let reported = Reported { at, skew, number, result };
        files::replace(&self.file(node), &serde_json::to_vec(&reported)?)
    }

    /// What a node reported last; nothing where it never did.
    pub fn last(&self, node: &Identity) -> io::Result<Option<Reported>> {
        // One that cannot be read is none: the next one takes its place.
        Ok(files::read(&self.file(node))?.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// Forgets a node.
    pub fn forget(&self, node: &Identity) -> io::Result<()> {
        match fs::remove_file(self.file(node)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn file(&self, node: &Identity) -> PathBuf {
        // The parts of an identity are names: nothing in them leads elsewhere.
        self.folder.join(format!("{node}.json"))
    }
}
