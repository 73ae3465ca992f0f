//! The file of a ledger: what is said to be on it outlives a power cut.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::files::{Draft, sync_folder_of};

#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    file: File,
    /// Whether the folder is known to lead to this file after a power cut, too.
    is_named: bool,
}

impl Disk {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self { path: path.to_owned(), file, is_named: false })
    }

    /// Writes lines to its end. When this comes back they are on disk.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if !self.is_named {
            sync_folder_of(&self.path)?;
            self.is_named = true;
        }
        self.file.write_all(lines)?;
        self.file.sync_data()
    }

    /// Has the file say this alone. Where that fails everything is as it was.
    pub(super) fn write_anew(&mut self, text: &[u8]) -> io::Result<()> {
        // What was put is what is gone on with: to open it again could fail, and the old one has no name any more.
        self.file = Draft::write(&self.path, text)?.put()?;
        self.is_named = false;
        Ok(())
    }
}
