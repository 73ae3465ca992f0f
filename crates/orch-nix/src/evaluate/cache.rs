//! What was evaluated before, on disk.
//!
//! A cache and nothing else: whatever cannot be read is not there, and losing all of it costs an evaluation.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use orch_model::{Digest, Health, Identity, StorePath};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::budget::Need;
use super::files::write_whole;
use super::reads::Reads;
use super::tree::Tree;
use super::{Disks, ExpectedSecret};
use crate::drv::DrvPath;

/// How many evaluations of a node are remembered, so that going to another revision and back costs nothing.
const KEPT: usize = 4;
/// How long what an evaluation read is kept.
const KEPT_FOR: Duration = Duration::from_hours(24 * 60);

/// An evaluation of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Everything that it depends on, except for what it read.
    pub(super) key: Digest,
    /// What it read: the name of a file, since nodes that were evaluated together share it.
    pub(super) reads: Digest,
    pub(super) drv: DrvPath,
    pub(super) system: StorePath,
    pub(super) platform: String,
    pub(super) health: Vec<Health>,
    pub(super) secrets: Vec<ExpectedSecret>,
    pub(super) disks: Option<Disks>,
}

/// What is known of a node.
#[derive(Debug)]
pub(super) enum Known {
    /// This is what it evaluates to, if it is still in the store.
    Fresh(Record),
    /// It was evaluated, and files have changed since.
    Stale,
    /// Nothing.
    Unknown,
}

/// The cache in its folder.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What each of these nodes is known to evaluate to.
    pub(super) fn look(&self, tree: &Tree, keys: &BTreeMap<&Identity, Digest>) -> Vec<Known> {
        let mut held: BTreeMap<Digest, bool> = BTreeMap::new();
        let mut holds = |reads: Digest| {
            let read = || read::<Reads>(&self.reads(reads)).is_some_and(|reads| reads.hold(tree));
            *held.entry(reads).or_insert_with(read)
        };
        let mut known = |identity: &Identity, key: Digest| {
            let mut records = self.records(identity);
            records.retain(|record| record.key == key);
            let is_known = !records.is_empty();
            match records.into_iter().find(|record| holds(record.reads)) {
                Some(record) => Known::Fresh(record),
                None if is_known => Known::Stale,
                None => Known::Unknown,
            }
        };
        keys.iter().map(|(identity, key)| known(identity, *key)).collect()
    }

    /// Remembers what nodes that were evaluated together read, and gives the name for it.
    pub(super) fn keep_reads(&self, reads: &Reads) -> io::Result<Digest> {
        let name = Digest::of(reads);
        write_whole(&self.reads(name), &json(reads))?;
        Ok(name)
    }

    /// Remembers an evaluation.
    pub(super) fn keep(&self, identity: &Identity, record: Record) -> io::Result<()> {
        let mut records = self.records(identity);
        records.retain(|other| (other.key, other.reads) != (record.key, record.reads));
        records.insert(0, record);
        records.truncate(KEPT);
        write_whole(&self.node(identity), &json(&records))
    }

    /// Forgets what nobody asks for any more.
    pub(super) fn tidy(&self) {
        let old = SystemTime::now().checked_sub(KEPT_FOR);
        for entry in fs::read_dir(self.folder.join("reads")).into_iter().flatten().flatten() {
            let written = entry.metadata().and_then(|about| about.modified()).ok();
            if written < old {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// What evaluations need.
    pub(super) fn need(&self) -> Need {
        read(&self.folder.join("memory.json")).unwrap_or_default()
    }

    pub(super) fn keep_need(&self, need: Need) -> io::Result<()> {
        write_whole(&self.folder.join("memory.json"), &json(&need))
    }

    /// Where the nixpkgs of a lock file is.
    pub(super) fn nixpkgs(&self, lock: Digest) -> Option<PathBuf> {
        read::<PathBuf>(&self.folder.join(format!("nixpkgs-{lock}.json"))).filter(|path| path.exists())
    }

    pub(super) fn keep_nixpkgs(&self, lock: Digest, path: &Path) -> io::Result<()> {
        write_whole(&self.folder.join(format!("nixpkgs-{lock}.json")), &json(&path))
    }

    fn records(&self, identity: &Identity) -> Vec<Record> {
        read(&self.node(identity)).unwrap_or_default()
    }

    fn node(&self, identity: &Identity) -> PathBuf {
        self.folder.join("nodes").join(format!("{}.json", identity.digest()))
    }

    fn reads(&self, name: Digest) -> PathBuf {
        self.folder.join("reads").join(format!("{name}.json"))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what orch defines can be written as JSON")
}
