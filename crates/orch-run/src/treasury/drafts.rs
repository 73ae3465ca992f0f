//! Files of a site written whole or not at all, by one process at a time.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use orch_secrets::{FOLDER, Vault};
use uuid::Uuid;

/// How the name of a file ends that is not whole yet.
const DRAFT: &str = ".orch-new";
/// How long another process that changes files is waited for.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits for the right to change files, and removes what those left who had it before and were cut off.
pub(super) fn lock(vault: &Vault, folder: &Path) -> io::Result<File> {
    let lock = lock_folder(folder)?;
    for folder in folders(vault) {
        sweep(&folder);
    }
    Ok(lock)
}

fn lock_folder(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "somebody else has the lock"));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    }
}

/// The folders that files are written in.
fn folders(vault: &Vault) -> BTreeSet<PathBuf> {
    let files = vault.files().unwrap_or_default();
    let folders = files.iter().filter_map(|file| vault.root().join(file).parent().map(Path::to_owned));
    folders.chain([vault.root().to_owned(), vault.root().join(FOLDER)]).collect()
}

/// Removes what those left who were cut off while they wrote: nobody else writes now.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(DRAFT) {
            // The next one tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes a whole new file in place of the old one, with its permission bits. A link stays, and what it leads to is replaced.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let path: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mode = fs::metadata(&path).map_or(0o644, |about| about.mode() & 0o777);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // By a name of its own: whoever was cut off may have left one.
    let draft = path.with_file_name(format!(".{name}.{}{DRAFT}", Uuid::new_v4().simple()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    let written =
        file.write_all(text).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, &path));
    if written.is_err() {
        // Nobody else knows of it.
        let _ = fs::remove_file(&draft);
    }
    written?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
