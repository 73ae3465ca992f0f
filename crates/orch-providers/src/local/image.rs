//! What a machine is made from.

use std::path::{Path, PathBuf};

/// What a machine is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    /// This machine's own programs, shared read-only.
    ThisMachine,
    /// A root file system in a folder, with an init of its own.
    Folder(PathBuf),
    /// The same as a tar archive.
    Archive(PathBuf),
}

impl Image {
    /// The image that a host file means by this text; paths are relative to the site.
    pub(crate) fn named(text: &str, site: &Path) -> Result<Self, String> {
        if text == "this-machine" {
            return Ok(Self::ThisMachine);
        }
        let path = site.join(text);
        if path.is_dir() {
            Ok(Self::Folder(path))
        } else if path.is_file() {
            Ok(Self::Archive(path))
        } else {
            Err(format!("image `{text}` is neither `this-machine` nor a folder or archive of the site"))
        }
    }

    /// Whether machines made from it share this machine's programs.
    pub(crate) fn shares_programs(&self) -> bool {
        *self == Self::ThisMachine
    }
}
