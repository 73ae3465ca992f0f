//! orch's library for Nix, which the program carries in itself, laid out where Nix can read it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use orch_model::Digest;

use super::files::{make_folder, scratch};

include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// What is asked before an evaluation, and is no part of the library for people.
const OWN: (&str, &str) = ("which-nixpkgs.nix", include_str!("which-nixpkgs.nix"));

/// The library, as files.
#[derive(Debug, Clone)]
pub(super) struct Library {
    /// The folder that it is in.
    pub(super) folder: PathBuf,
    /// By what it is known again.
    pub(super) digest: Digest,
}

impl Library {
    /// Lays the library out in a folder that is named for what is in it, where it is not there yet.
    pub(super) fn lay_out(cache: &Path) -> io::Result<Self> {
        let files: Vec<(&str, &str)> = FILES.iter().copied().chain([OWN]).collect();
        let digest = Digest::of(&files);
        let folder = cache.join("library").join(digest.to_string());
        if !folder.is_dir() {
            let making = scratch(&cache.join("library"))?;
            for (name, text) in files {
                let path = making.join(name);
                fs::create_dir_all(path.parent().unwrap_or(&making))?;
                fs::write(path, text)?;
            }
            match fs::rename(&making, &folder) {
                // Somebody else laid it out meanwhile.
                Err(_) if folder.is_dir() => fs::remove_dir_all(&making)?,
                renamed => renamed?,
            }
        }
        Ok(Self { folder: folder.canonicalize()?, digest })
    }

    /// A library that lies in a folder already.
    pub(super) fn at(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let mut texts = Vec::new();
        read(&folder, &mut texts)?;
        texts.sort();
        Ok(Self { digest: Digest::of(&texts), folder })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn read(folder: &Path, texts: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, texts)?;
        } else {
            texts.push((path.display().to_string(), String::from_utf8_lossy(&fs::read(&path)?).into_owned()));
        }
    }
    Ok(())
}

/// The folder of a cache, ready to be written to.
pub(super) fn prepare(cache: &Path) -> io::Result<PathBuf> {
    make_folder(&cache.join("library"))?;
    make_folder(&cache.join("nodes"))?;
    make_folder(&cache.join("reads"))?;
    cache.canonicalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_laid_out_once_and_whole() {
        let cache = tempfile::tempdir().unwrap();
        let cache = prepare(cache.path()).unwrap();
        let first = Library::lay_out(&cache).unwrap();
        fs::write(first.file("witness"), "").unwrap();
        let second = Library::lay_out(&cache).unwrap();
        assert_eq!((&first.folder, first.digest), (&second.folder, second.digest));
        assert!(second.file("witness").exists(), "it was not laid out again");
        assert_eq!(fs::read_to_string(second.file(OWN.0)).unwrap(), OWN.1);
        assert_eq!(fs::read_dir(cache.join("library")).unwrap().count(), 1, "nothing half-made is left");
    }
}
