//! Where the value of a secret is in clear: in memory, and on no disk.
//!
//! Where its path is in memory it is there itself. Where it is not, the path becomes a link into a folder of orch's own that
//! is. Where there is no such folder either, it is nowhere.

use std::path::{Path, PathBuf};

use orch_model::KeyName;

use crate::error::ApplyError;
use crate::node::{Folder, Node, Owner};

/// Where the values are whose paths are on a disk, by the names of their secrets.
pub(super) const FOLDER: &str = "/run/orch/secrets";

/// Where the value of a secret is in clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At its path.
    Itself,
    /// In the folder, and its path is a link to that.
    Linked,
}

impl Place {
    /// The place for what is to appear at a path; nothing is made for that.
    pub(super) fn of(node: &Node, path: &Path) -> Result<Self, ApplyError> {
        let above = path.parent().unwrap_or(path);
        if is_in_memory(node, above)? {
            Ok(Self::Itself)
        } else if is_in_memory(node, Path::new(FOLDER))? {
            Ok(Self::Linked)
        } else {
            let why =
                "neither its folder nor `/run` is in memory, and a secret must not come to lie on a disk";
            Err(ApplyError::refused(path, why))
        }
    }
}

/// Where a link to the value of a secret leads.
pub(super) fn target(name: &KeyName) -> PathBuf {
    Path::new(FOLDER).join(name.as_str())
}

/// Opens the folder, and makes it where it is not there. Everybody may pass through it, to what is theirs, and nobody may
/// see what else there is.
pub(super) fn folder(node: &Node) -> Result<Folder, ApplyError> {
    let above = Path::new(FOLDER).parent().expect("the folder is in one");
    node.make_folder(above, 0o755)?;
    let folder = node.make_folder(Path::new(FOLDER), 0o711)?;
    must_be_in_memory(&folder)?;
    Ok(folder)
}

/// Asked of the folder that is held open: nobody can put another in its place before it is written to.
pub(super) fn must_be_in_memory(folder: &Folder) -> Result<(), ApplyError> {
    if folder.is_in_memory()? {
        return Ok(());
    }
    Err(ApplyError::refused(
        folder.path(),
        "it is not in memory, and a secret must not come to lie on a disk",
    ))
}

/// A value is put only where nobody else could exchange it for one of his own, which whoever reads it would believe.
pub(super) fn must_be_closed(folder: &Folder, owner: Owner) -> Result<(), ApplyError> {
    let Some(why) = folder.is_open_to_strangers(owner)? else { return Ok(()) };
    let why =
        format!("no secret is put there, because {why}; give it a folder of its own below `/run/secrets`");
    Err(ApplyError::refused(folder.path(), why))
}

/// Whether what would be made there is in memory: the nearest folder that is there decides.
fn is_in_memory(node: &Node, path: &Path) -> Result<bool, ApplyError> {
    for above in path.ancestors() {
        if let Some(folder) = node.folder(above)? {
            return folder.is_in_memory();
        }
    }
    Ok(false)
}
