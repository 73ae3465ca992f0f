//! Files of the cache: written as a whole or not at all, for nobody else.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A new folder inside of another, under a name that nobody else uses.
pub(super) fn scratch(inside: &Path) -> io::Result<PathBuf> {
    make_folder(inside)?;
    let path = inside.join(unique());
    DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

/// Puts a file in its place: who reads it sees all of the old or all of the new.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_file_name(unique());
    write_new(&beside, bytes)?;
    fs::rename(&beside, path).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// A file that is not there yet.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, bytes)
}

fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    format!(".{}-{}-{now}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
