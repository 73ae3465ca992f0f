//! Keys, made by `ssh-keygen`: the one that opens nodes, and the ones that nodes are known by.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use orch_model::PublicKey;
use thiserror::Error;
use uuid::Uuid;

use crate::finish::finish;

/// How long a key may take. It takes no time at all, but for a file system or a source of chance that does not answer.
const LIMIT: Duration = Duration::from_mins(1);

/// A key could not be had.
#[derive(Debug, Error)]
pub enum KeyError {
    /// A file could not be used.
    #[error("the key `{path}` cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The program that makes keys could not be run.
    #[error("`ssh-keygen` cannot be run")]
    NoProgram(#[source] io::Error),
    /// The program that makes keys did not.
    #[error("`ssh-keygen` failed: {said}")]
    Failed {
        /// What it said.
        said: String,
    },
    /// What should be a public key is none.
    #[error("`{path}` is not a key: {why}")]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl KeyError {
    /// What to try next.
    pub fn hint(&self) -> String {
        match self {
            Self::File { path, .. } => {
                format!("see whether `{}` can be written and has room", path.display())
            }
            Self::NoProgram(_) | Self::Failed { .. } => "install the OpenSSH client and run again".into(),
            Self::NotAKey { path, .. } => {
                format!("move `{}` away, and run again to have a new one made", path.display())
            }
        }
    }
}

/// The public half of the key at `path`, which is made if it is not there. Two who ask at once get the same.
pub fn ensure_identity(path: &Path) -> Result<PublicKey, KeyError> {
    let failed = |source| KeyError::File { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    // A private key may lie in a draft, also in one that was left behind after the key had its name.
    super::folder::sweep_drafts(folder);
    if !path.try_exists().map_err(failed)? {
        private_folder(folder).map_err(failed)?;
        let draft = Draft::make(folder)?;
        // A link is made or not, whole; the one who comes second finds the key of the first.
        match fs::hard_link(draft.private(), path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
    }
    // Asked of the private half: another file beside it could be missing, or another key's.
    let shown = keygen(&["-y", "-P", "", "-f"], path)?;
    parse(path, &shown)
}

/// A host key for a machine that does not exist yet, in `folder` as `ssh_host_ed25519_key` and `.pub`: the file of the
/// private half, and the public half. The one that is there already is kept, so that a machine whose making is begun
/// again has the key that was promised for it.
pub fn make_host_key(folder: &Path) -> Result<(PathBuf, PublicKey), KeyError> {
    let private = folder.join("ssh_host_ed25519_key");
    let public = ensure_identity(&private)?;
    let beside = folder.join("ssh_host_ed25519_key.pub");
    let written = super::folder::write(&beside, &format!("{public}\n"));
    written.map_err(|source| KeyError::File { path: beside, source })?;
    Ok((private, public))
}

/// A fresh key in a folder of its own, gone when dropped.
struct Draft(PathBuf);

impl Draft {
    fn make(folder: &Path) -> Result<Self, KeyError> {
        let draft = Self(folder.join(super::folder::draft(&Uuid::new_v4().simple().to_string())));
        let made = fs::DirBuilder::new().mode(0o700).create(&draft.0);
        made.map_err(|source| KeyError::File { path: draft.0.clone(), source })?;
        keygen(&["-q", "-t", "ed25519", "-N", "", "-C", "orch", "-f"], &draft.private())?;
        Ok(draft)
    }

    fn private(&self) -> PathBuf {
        self.0.join("key")
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn keygen(args: &[&str], file: &Path) -> Result<String, KeyError> {
    let ended = finish(Command::new("ssh-keygen").args(args).arg(file).stdin(Stdio::null()), LIMIT);
    let ended = ended.map_err(KeyError::NoProgram)?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let said = ended.said();
    let said = said.lines().next_back().unwrap_or("it said nothing");
    Err(KeyError::Failed { said: orch_model::printable(said).into_owned() })
}

fn parse(path: &Path, line: &str) -> Result<PublicKey, KeyError> {
    line.trim().parse().map_err(|why| KeyError::NotAKey { path: path.to_owned(), why })
}

fn private_folder(folder: &Path) -> io::Result<()> {
    super::folder::make_private(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn has_keygen() -> bool {
        let has = Command::new("ssh-keygen").arg("-?").output().is_ok();
        if !has {
            println!("skipped: there is no ssh-keygen");
        }
        has
    }

    #[test]
    fn two_who_ask_for_a_key_at_once_get_the_same_and_nothing_is_left_beside_it() {
        if !has_keygen() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new folder/id");
        let ask = || ensure_identity(&path).unwrap();
        let keys = std::thread::scope(|scope| {
            let askers: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            askers.into_iter().map(|asker| asker.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert_eq!(ensure_identity(&path).unwrap(), keys[0], "asked again, it is the same");
    }

    #[test]
    fn a_draft_that_was_left_beside_a_finished_key_is_swept() {
        if !has_keygen() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("id");
        let key = ensure_identity(&path).unwrap();
        let left = folder.path().join(super::super::folder::draft("left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("key"), "private").unwrap();
        let long_ago = std::time::SystemTime::now() - Duration::from_hours(2);
        fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
        assert_eq!((ensure_identity(&path).unwrap(), left.exists()), (key, false));
    }

    #[test]
    fn a_host_key_is_kept_once_it_was_promised() {
        if !has_keygen() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (private, public) = make_host_key(folder.path()).unwrap();
        let line = fs::read_to_string(private.with_extension("pub")).unwrap();
        assert_eq!(line.trim(), public.as_str());
        assert_eq!(make_host_key(folder.path()).unwrap(), (private, public));
    }

    #[test]
    fn a_file_that_is_no_key_is_named_and_left_alone() {
        if !has_keygen() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("id");
        fs::write(&path, "not a key").unwrap();
        assert!(ensure_identity(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "not a key");
    }
}
