//! Files of the server's own folder: whole or not there, and for its user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a folder that nobody else can look into.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a whole new file in place of the old one. When this comes back, it outlives a power cut.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    Draft::write(path, content)?.put()?;
    sync_folder_of(path)
}

/// Has it outlive a power cut that a file of this name is there, or is not.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// A whole new file that is on disk, but not yet in the place of the old one. It goes where nobody puts it there.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    place: &'a Path,
    path: PathBuf,
    file: Option<File>,
}

impl<'a> Draft<'a> {
    pub(crate) fn write(place: &'a Path, content: &[u8]) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        let (path, file) = loop {
            let path = draft_of(place);
            match options.open(&path) {
                // Somebody of the same number, in another container or before a power cut, has one of this name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => break (path, file?),
            }
        };
        let mut draft = Self { place, path, file: None };
        let file = draft.file.insert(file);
        file.write_all(content)?;
        file.sync_all()?;
        Ok(draft)
    }

    /// Puts it in the place of the old one, and gives it to whoever goes on writing at its end.
    pub(crate) fn put(mut self) -> io::Result<File> {
        fs::rename(&self.path, self.place)?;
        Ok(self.file.take().expect("it is written to, and put once"))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // Where it was put it has that name no more.
        if self.file.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A name that no other writer in this process has. Its ending tells it from what it is a draft of.
fn draft_of(place: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{count}.new", std::process::id()));
    place.with_file_name(name)
}

/// The content of a file; nothing where there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Holds a lock on a file for as long as what comes back lives. Waits for it.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.lock()?;
    Ok(file)
}
