//! What a node writes down of a rollout, before each step of it.
//!
//! The room for it is taken when it begins: there are two files of one size, the record and a spare. A new record is
//! written over the spare and the two change places, so that it needs nothing from a disk that is full meanwhile, and at
//! every moment there is a whole one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use orch_model::system::{RolloutPhase, RolloutRecord, SwitchOrder};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::cut;
use super::error::SystemError;
use super::places::Places;

const RECORD: &str = "rollout.json";
const SPARE: &str = "rollout.spare";
/// For whoever looks from the node itself; gone with a reboot.
const COPY: &str = "record.json";
/// What a record takes, whatever it says.
const ROOM: usize = 64 << 10;

/// A rollout, with what only the node needs to know of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rollout {
    #[serde(flatten)]
    pub(crate) record: RolloutRecord,
    pub(super) order: SwitchOrder,
    /// The boot in which this was written.
    pub(super) boot: String,
    /// The boot in which the new system was begun to be activated, where it was.
    pub(super) activated_in: Option<String>,
    /// Since when a confirmation is waited for, in milliseconds since boot.
    pub(super) waits_since: Option<u64>,
    /// The generation that was made for the new system, where it was not one already.
    pub(super) generation: Option<u64>,
    /// The generation that the profile led to before.
    pub(super) previous_profile: Option<String>,
    /// Whether what the node boots by default may be another since.
    pub(super) touched_default: bool,
    /// Whether the node was rebooted to get back. It is once: what comes up with the new system again would be for ever.
    #[serde(default)]
    pub(super) rebooted_back: bool,
}

impl Rollout {
    pub(super) const fn phase(&self) -> RolloutPhase {
        self.record.phase
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.record.phase.is_end()
    }

    /// What was booted by default before, or ran, where nothing was.
    pub(super) fn default_before(&self) -> Option<&str> {
        self.record.previous_default.as_deref().or(self.record.previous.as_deref())
    }
}

/// Reads the last rollout; nothing where there never was one.
pub(crate) fn load(places: &Places) -> Result<Option<Rollout>, SystemError> {
    let read = |name: &str| match fs::read(places.kept(name)) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SystemError::file("read", &places.kept(name))(error)),
    };
    // A spare that can be read is the record before this one, and better than none.
    read(RECORD)?.map_or_else(|| read(SPARE), |found| Ok(Some(found)))
}

/// Writes it down, and comes back when it is on the disk.
pub(super) fn write(places: &Places, rollout: &Rollout) -> Result<(), SystemError> {
    let (record, spare) = (places.kept(RECORD), places.kept(SPARE));
    let text = text_of(rollout);
    overwrite(&spare, &text).map_err(SystemError::file("write", &spare))?;
    exchange(&spare, &record).map_err(SystemError::file("replace", &record))?;
    if !spare.exists() {
        overwrite(&spare, &vec![b' '; ROOM]).map_err(SystemError::file("write", &spare))?;
    }
    let folder = record.parent().expect("the record is in a folder");
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(SystemError::file("bring to the disk", folder))?;
    // Nobody depends on the copy.
    let _ = fs::write(places.passing(COPY), text.trim_ascii_end());
    cut::here(rollout.phase());
    Ok(())
}

/// As JSON of one size. Of evidence that does not fit the last is kept.
fn text_of(rollout: &Rollout) -> Vec<u8> {
    let write =
        |rollout: &Rollout| serde_json::to_vec(rollout).expect("what orch defines can be written as JSON");
    let (mut text, mut shorter) = (write(rollout), rollout.clone());
    while text.len() > ROOM && !shorter.record.evidence.is_empty() {
        let half = shorter.record.evidence.len().div_ceil(2);
        shorter.record.evidence.drain(..half);
        text = write(&shorter);
    }
    let room = text.len().max(ROOM);
    text.resize(room, b' ');
    text
}

fn overwrite(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    let mut file = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.write_all(text)?;
    file.set_len(u64::try_from(text.len()).unwrap_or(u64::MAX))?;
    file.sync_all()
}

/// Has two files change places; the first takes the place of the second where there is none, or where that is all that can
/// be had here.
fn exchange(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;

    #[test]
    fn the_record_that_machines_are_tested_with_is_one_that_is_understood() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::of(&Node::at(root.path()).unwrap());
        fs::create_dir_all(places.kept(RECORD).parent().unwrap()).unwrap();
        fs::write(places.kept(RECORD), include_str!("../../tests/system/interrupted.json")).unwrap();
        let rollout = load(&places).unwrap().expect("it is a whole record");
        assert!(!rollout.has_ended() && rollout.order.id == rollout.record.id, "{rollout:?}");
    }
}
