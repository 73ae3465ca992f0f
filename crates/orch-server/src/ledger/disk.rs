//! The file of a ledger: what is said to be on it outlives a power cut, and what is not said to be there is not half there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::files::{Draft, sync_folder_of};

/// Writes to the end of a file and flushes it. Tests have one that runs out of room.
pub(super) type Put = fn(&mut File, &[u8]) -> io::Result<()>;

#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    file: File,
    put: Put,
    /// How long the file is, by what is known to be on disk.
    length: u64,
    /// Whether there may be more in it than that.
    is_torn: bool,
    /// Whether the folder is known to lead to this file after a power cut, too.
    is_named: bool,
}

impl Disk {
    pub(super) fn open(path: &Path, put: Put) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, put, length, is_torn: false, is_named: false })
    }

    /// Writes lines to its end. When this comes back they are on disk, or none of them is in the file.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.mend()?;
        let written = (self.put)(&mut self.file, lines);
        if written.is_ok() {
            self.length += lines.len() as u64;
        } else {
            self.is_torn = true;
            // What cannot be mended now is mended before anything else is written.
            let _ = self.mend();
        }
        written
    }

    /// Has the file say this alone. Where that fails everything is as it was.
    pub(super) fn write_anew(&mut self, text: &[u8]) -> io::Result<()> {
        // What was put is what is gone on with: to open it again could fail, and the old one has no name any more.
        self.file = Draft::write(&self.path, text)?.put()?;
        (self.length, self.is_torn, self.is_named) = (text.len() as u64, false, false);
        Ok(())
    }

    fn mend(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        if !self.is_named {
            sync_folder_of(&self.path)?;
            self.is_named = true;
        }
        Ok(())
    }
}

pub(super) fn put(file: &mut File, lines: &[u8]) -> io::Result<()> {
    file.write_all(lines)?;
    file.sync_data()
}
