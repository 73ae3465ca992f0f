//! A folder outside of the site that evaluations read from, such as a nixpkgs that somebody works in.
//!
//! What is read there is not watched, so all of it counts. Nothing in the store ever changes, and it is known by its name.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use orch_model::Digest;

/// How many files are looked at. A folder with more is evaluated each time.
const MOST: u64 = 400_000;

/// By what a folder, or a file, is known again; in words, why it is not. Its path has no links in it.
pub(super) fn digest(path: &Path) -> Result<Digest, String> {
    if path.starts_with("/nix/store") {
        return Ok(Digest::of(&path));
    }
    let mut sum = Sum::default();
    let (root, mut waiting) = (path, vec![path.to_owned()]);
    while let Some(path) = waiting.pop() {
        sum.add(root, &path, &mut waiting)?;
    }
    Ok(Digest::of(&(path, sum.count, sum.bytes, sum.newest)))
}

/// All files of a folder together.
#[derive(Default)]
struct Sum {
    count: u64,
    bytes: u64,
    /// When the last of them was changed. Unlike the time that a file says it was written at, nobody can set this back.
    newest: (i64, i64),
}

impl Sum {
    fn add(&mut self, root: &Path, path: &Path, waiting: &mut Vec<PathBuf>) -> Result<(), String> {
        let unread = |error| format!("`{}` cannot be looked at: {error}", path.display());
        let about = fs::symlink_metadata(path).map_err(unread)?;
        self.count += 1;
        self.newest = self.newest.max((about.ctime(), about.ctime_nsec()));
        if self.count > MOST {
            return Err(format!("more than {MOST} files lie where `{}` does", path.display()));
        }
        if about.is_symlink() {
            return leads_within(root, path);
        }
        if !about.is_dir() {
            self.bytes = self.bytes.saturating_add(about.len());
        } else if !path.ends_with(".git/objects") {
            // What git keeps there is named for what is in it.
            for entry in fs::read_dir(path).map_err(unread)? {
                waiting.push(entry.map_err(unread)?.path());
            }
        }
        Ok(())
    }
}

/// What a link leads to may be read and is not looked at, unless it lies in the same folder, in the store or nowhere.
fn leads_within(root: &Path, path: &Path) -> Result<(), String> {
    let Ok(target) = path.canonicalize() else { return Ok(()) };
    if target.starts_with(root) || target.starts_with("/nix/store") {
        return Ok(());
    }
    Err(format!("`{}` leads elsewhere", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_known_again_until_anything_in_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), "one").unwrap();
        let first = digest(folder.path()).unwrap();
        assert_eq!(digest(folder.path()), Ok(first));
        // The clock of the kernel does not tell two changes apart that follow at once.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(inner.join("file"), "two").unwrap();
        assert_ne!(digest(folder.path()), Ok(first), "as long as before");
        std::os::unix::fs::symlink("/etc", inner.join("link")).unwrap();
        assert!(digest(folder.path()).unwrap_err().contains("leads elsewhere"));
    }
}
