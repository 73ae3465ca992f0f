//! What an evaluation read, so that it is known later whether it would read the same again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use orch_model::Digest;
use serde::{Deserialize, Serialize};

use super::tree::Tree;
use super::watch::Opened;

/// Words with which Nix code asks whether something exists without opening it. Where a site has one of them, every name
/// in it counts.
const ASK_FOR_NAMES: [&str; 5] = ["pathExists", "readFileType", "pathIs", "pathType", "fileset"];
/// Words with which Nix code gets another answer each time.
const ANOTHER_EACH_TIME: [&str; 1] = ["currentTime"];

/// What an evaluation read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reads {
    /// Files of the site, with what they said.
    files: BTreeMap<String, Digest>,
    /// Folders of the site, with the names that were in them.
    folders: BTreeMap<String, Digest>,
    /// Where the links of the site led.
    links: Digest,
    /// All names of the site, where they count.
    names: Option<Digest>,
    /// Files elsewhere.
    outside: Vec<Stamp>,
}

/// A file that is known by what its folder says of it, and not read again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Stamp {
    path: PathBuf,
    bytes: u64,
    seconds: i64,
    nanoseconds: i64,
    inode: u64,
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        let path = path.to_owned();
        let (seconds, nanoseconds) = (about.mtime(), about.mtime_nsec());
        Some(Self { path, bytes: about.len(), seconds, nanoseconds, inode: about.ino() })
    }
}

impl Reads {
    /// What was opened in a site, and evaluated in it and elsewhere, as it is now; or why that says nothing about the next time.
    pub(super) fn of(
        tree: &Tree,
        opened: &Opened,
        (evaluated, outside): (&BTreeSet<String>, &BTreeSet<PathBuf>),
    ) -> Result<Self, String> {
        if let Some(odd) = tree.odd() {
            return Err(odd.to_owned());
        }
        let mut names = None;
        for file in evaluated {
            let text = fs::read(tree.root.join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            if let Some(word) = ANOTHER_EACH_TIME.iter().find(|word| text.contains(**word)) {
                return Err(format!("`{file}` says `{word}`"));
            }
            if ASK_FOR_NAMES.iter().any(|word| text.contains(word)) {
                names = Some(tree.names());
            }
        }
        let known = |path: &String, digest: Option<Digest>| {
            digest.map(|digest| (path.clone(), digest)).ok_or_else(|| format!("`{path}` is not watched"))
        };
        let files =
            opened.files.iter().map(|file| known(file, tree.content(file))).collect::<Result<_, _>>()?;
        let folders =
            opened.folders.iter().map(|path| known(path, tree.listing(path))).collect::<Result<_, _>>()?;
        let stamp = |path: &PathBuf| Stamp::of(path).ok_or_else(|| format!("`{}` is gone", path.display()));
        let outside = outside.iter().map(stamp).collect::<Result<_, _>>()?;
        Ok(Self { files, folders, links: tree.links(), names, outside })
    }

    /// Whether an evaluation would read the same.
    pub(super) fn hold(&self, tree: &Tree) -> bool {
        tree.odd().is_none()
            && self.links == tree.links()
            && self.names.is_none_or(|names| names == tree.names())
            && self.folders.iter().all(|(folder, names)| tree.listing(folder) == Some(*names))
            && self.files.iter().all(|(file, content)| tree.content(file) == Some(*content))
            && self.outside.iter().all(|stamp| Stamp::of(&stamp.path).as_ref() == Some(stamp))
    }
}
