//! The files of one [`Ssh`](super::Ssh): a folder of its own under the one that all drivers share, gone with it.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

/// The longest path of a socket that every system takes, less what `ssh` puts behind it while it makes one.
pub(super) const LONGEST_SOCKET: usize = 103 - ".0123456789abcdef".len();

/// Room for the number of a socket.
const NUMBER: usize = "/99999".len();

/// What the folder of a run is called, and its parts.
const PREFIX: &str = "run-";
const DRAFT: &str = ".draft-";
const LOCK: &str = "lock";
const ELSEWHERE: &str = "sockets";

/// After how long a draft is not being made any more, whoever began it.
const ABANDONED: Duration = Duration::from_hours(1);

/// The folder of one run, held by a lock for as long as its owner lives.
#[derive(Debug)]
pub(super) struct RunFolder {
    path: PathBuf,
    /// Where sockets are, where the folder's own path is too long for them.
    elsewhere: Option<PathBuf>,
    _lock: File,
}

impl RunFolder {
    /// Makes one under `base`, and removes those whose owners were killed.
    pub(super) fn make(base: &Path) -> io::Result<Self> {
        make_private(base)?;
        sweep(base);
        let name = Uuid::new_v4().simple().to_string();
        // It is locked before it bears a name that others look for.
        let draft = base.join(draft(&name[..12]));
        let path = base.join(format!("{PREFIX}{}", &name[..12]));
        DirBuilder::new().mode(0o700).create(&draft)?;
        let lock = private(&draft.join(LOCK))?;
        lock.lock()?;
        let elsewhere = shorter(&path, &name[..12], &draft.join(ELSEWHERE))?;
        fs::rename(&draft, &path)?;
        Ok(Self { path, elsewhere, _lock: lock })
    }

    /// The generated configuration.
    pub(super) fn config(&self) -> PathBuf {
        self.path.join("config")
    }

    /// The pinned keys.
    pub(super) fn known_hosts(&self) -> PathBuf {
        self.path.join("known_hosts")
    }

    /// The socket of the connection with this number.
    pub(super) fn socket(&self, number: usize) -> PathBuf {
        self.elsewhere.as_ref().unwrap_or(&self.path).join(number.to_string())
    }

    /// What `ssh` said about the connection with this number.
    pub(super) fn log(&self, number: usize) -> PathBuf {
        self.path.join(format!("{number}.log"))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next one who makes such a folder.
        remove(&self.path);
    }
}

/// Removes the folders that nobody holds any more.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_run = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
        if is_run && File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok()) {
            remove(&path);
        }
    }
    sweep_drafts(base);
}

/// What a folder is called while it is being made.
pub(super) fn draft(name: &str) -> String {
    format!("{DRAFT}{name}")
}

/// Removes the drafts of those who were killed. They can be told from the living by their age alone: a lock is not there
/// from the first moment.
pub(super) fn sweep_drafts(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    let drafts = entries.flatten().filter(|entry| entry.file_name().as_bytes().starts_with(DRAFT.as_bytes()));
    for draft in drafts {
        let changed = draft.metadata().and_then(|data| data.modified());
        if changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > ABANDONED)) {
            remove(&draft.path());
        }
    }
}

fn remove(path: &Path) {
    if let Ok(elsewhere) = fs::read_link(path.join(ELSEWHERE)) {
        let _ = fs::remove_dir_all(elsewhere);
    }
    let _ = fs::remove_dir_all(path);
}

/// A folder for sockets, where this one's path is too long. The link to it is there first, so that whoever sweeps finds
/// it.
fn shorter(path: &Path, name: &str, link: &Path) -> io::Result<Option<PathBuf>> {
    if path.as_os_str().len() + NUMBER <= LONGEST_SOCKET {
        return Ok(None);
    }
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let fits =
        |folder: &PathBuf| folder.join("orch-").as_os_str().len() + name.len() + NUMBER <= LONGEST_SOCKET;
    let made = [runtime, Some(env::temp_dir()), Some("/tmp".into())].into_iter().flatten().filter(fits);
    let mut last = io::Error::other("there is no folder with a path short enough for a socket");
    for folder in made {
        let folder = folder.join(format!("orch-{name}"));
        // Never one that is there already: it could be somebody else's.
        symlink(&folder, link)?;
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(Some(folder)),
            Err(error) => last = error,
        }
        fs::remove_file(link)?;
    }
    Err(last)
}

/// Makes a folder that its user alone can read, if it is not there.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file that its user alone can read, whole or not at all.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_added_extension(Uuid::new_v4().simple().to_string());
    let written = private(&draft).and_then(|mut file| file.write_all(text.as_bytes()));
    let placed = written.and_then(|()| fs::rename(&draft, path));
    if placed.is_err() {
        let _ = fs::remove_file(&draft);
    }
    placed
}

/// A file to be locked, made where it is not there.
pub(super) fn lockable(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// An empty file that its user alone can read.
pub(super) fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_private_and_gone_with_its_owner() {
        let base = tempfile::tempdir().unwrap();
        let run = RunFolder::make(&base.path().join("ssh")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&base.path().join("ssh")), mode(&run.path)), (0o700, 0o700));
        write(&run.config(), "Host *\n").unwrap();
        assert_eq!(mode(&run.config()), 0o600);
        drop(run);
        assert_eq!(fs::read_dir(base.path().join("ssh")).unwrap().count(), 0);
    }

    #[test]
    fn sockets_go_elsewhere_where_the_path_is_too_long_and_leave_nothing_there() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("long".repeat(30));
        let run = RunFolder::make(&deep).unwrap();
        let socket = run.socket(99_999);
        assert!(socket.as_os_str().len() <= LONGEST_SOCKET, "{}", socket.display());
        let folder = socket.parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        drop(run);
        assert!(!folder.exists());
    }

    #[test]
    fn the_folder_of_a_killed_owner_is_swept_and_that_of_a_living_one_is_not() {
        let base = tempfile::tempdir().unwrap();
        let living = RunFolder::make(base.path()).unwrap();
        let killed = base.path().join("run-killed");
        let sockets = tempfile::tempdir().unwrap().keep();
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join(LOCK), "").unwrap();
        symlink(&sockets, killed.join(ELSEWHERE)).unwrap();
        let next = RunFolder::make(base.path()).unwrap();
        assert!(living.path.exists() && next.path.exists() && !killed.exists() && !sockets.exists());
    }

    #[test]
    fn a_draft_that_was_abandoned_is_swept_with_its_sockets_and_a_fresh_one_is_not() {
        let base = tempfile::tempdir().unwrap();
        let sockets = tempfile::tempdir().unwrap().keep();
        let [old, fresh] = ["old", "fresh"].map(|name| base.path().join(draft(name)));
        for draft in [&old, &fresh] {
            fs::create_dir(draft).unwrap();
        }
        symlink(&sockets, old.join(ELSEWHERE)).unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED;
        File::open(&old).unwrap().set_modified(long_ago).unwrap();
        drop(RunFolder::make(base.path()).unwrap());
        assert!(!old.exists() && !sockets.exists() && fresh.exists());
    }
}
