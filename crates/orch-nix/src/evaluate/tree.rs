//! A site as folders and names, without what is in its files.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use orch_model::Digest;
use serde::Serialize;

/// Folders that no evaluation has a reason to look into, and that others write to all the time.
const LEFT_OUT: [&str; 2] = [".git", "target"];
/// How many folders are looked at. A site with more is evaluated each time.
const MOST_FOLDERS: usize = 20_000;

/// The folders of a site, by their path below it; the site itself is the empty one.
#[derive(Debug)]
pub(super) struct Tree {
    /// The site.
    pub(super) root: PathBuf,
    folders: BTreeMap<String, BTreeMap<String, Kind>>,
    /// Why what is read here cannot be known, where it cannot.
    odd: Option<String>,
    contents: Mutex<HashMap<PathBuf, Option<Digest>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
enum Kind {
    File,
    Folder,
    /// With where it leads.
    Link(String),
    Other,
}

impl Tree {
    /// Looks at a site. `cache` is left out where it lies inside.
    pub(super) fn walk(root: &Path, cache: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let mut tree = Self { root, folders: BTreeMap::new(), odd: None, contents: Mutex::default() };
        let mut waiting = vec![String::new()];
        while let Some(folder) = waiting.pop() {
            if tree.folders.len() == MOST_FOLDERS {
                tree.odd = Some(format!("the site has more than {MOST_FOLDERS} folders"));
                break;
            }
            let names = tree.list(&folder)?;
            let inner =
                names.iter().filter(|(_, kind)| **kind == Kind::Folder).map(|(name, _)| join(&folder, name));
            waiting.extend(inner.filter(|path| !is_left_out(path) && tree.root.join(path) != cache));
            tree.folders.insert(folder, names);
        }
        Ok(tree)
    }

    fn list(&mut self, folder: &str) -> io::Result<BTreeMap<String, Kind>> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let Ok(name) = entry.file_name().into_string() else {
                self.odd = Some(format!("`{folder}` has a name in it that is no text"));
                continue;
            };
            let kind = if kind.is_symlink() {
                self.link(&entry.path())
            } else if kind.is_dir() {
                Kind::Folder
            } else if kind.is_file() {
                Kind::File
            } else {
                Kind::Other
            };
            names.insert(name, kind);
        }
        Ok(names)
    }

    /// A link may lead to what is watched anyway, or into the store, where nothing changes. What else it leads to could
    /// be read without being seen.
    fn link(&mut self, path: &Path) -> Kind {
        if let Ok(target) = path.canonicalize()
            && !target.starts_with(&self.root)
            && !target.starts_with("/nix/store")
        {
            self.odd = Some(format!("`{}` leads out of the site", path.display()));
        }
        Kind::Link(fs::read_link(path).map(|target| target.display().to_string()).unwrap_or_default())
    }

    /// Why what is read here cannot be known.
    pub(super) fn odd(&self) -> Option<&str> {
        self.odd.as_deref()
    }

    /// Its folders, by their path below it.
    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        self.folders.keys().map(String::as_str)
    }

    /// The folders that were left out, with all below them; in words, why they are not all known.
    pub(super) fn left_out(&self) -> Result<Vec<String>, String> {
        let is_aside = |path: &String| is_left_out(path);
        let within = |(folder, names): (&String, &BTreeMap<String, Kind>)| {
            let folders = names.iter().filter(|(_, kind)| **kind == Kind::Folder);
            folders.map(|(name, _)| join(folder, name)).filter(is_aside).collect::<Vec<_>>()
        };
        let mut waiting: Vec<String> = self.folders.iter().flat_map(within).collect();
        let mut found = Vec::new();
        while let Some(folder) = waiting.pop() {
            if found.len() == MOST_FOLDERS {
                return Err(format!(
                    "`{folder}` is one of more than {MOST_FOLDERS} folders that are left out"
                ));
            }
            // What others are taking away at this moment is not there to be read.
            for entry in fs::read_dir(self.root.join(&folder)).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && let Ok(name) = entry.file_name().into_string()
                {
                    waiting.push(join(&folder, &name));
                }
            }
            found.push(folder);
        }
        Ok(found)
    }

    /// What is in a folder, by name.
    pub(super) fn listing(&self, folder: &str) -> Option<Digest> {
        self.folders.get(folder).map(Digest::of)
    }

    /// All names there are.
    pub(super) fn names(&self) -> Digest {
        Digest::of(&self.folders)
    }

    /// All links there are, and where they lead.
    pub(super) fn links(&self) -> Digest {
        let of = |folder: &BTreeMap<String, Kind>| {
            let links = folder.iter().filter(|(_, kind)| matches!(kind, Kind::Link(_)));
            links.map(|(name, kind)| (name.clone(), kind.clone())).collect::<Vec<_>>()
        };
        let links: Vec<_> = self
            .folders
            .iter()
            .map(|(path, folder)| (path, of(folder)))
            .filter(|(_, links)| !links.is_empty())
            .collect();
        Digest::of(&links)
    }

    /// What a file of the site says, read once.
    pub(super) fn content(&self, file: &str) -> Option<Digest> {
        let path = self.root.join(file);
        let mut known = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(path).or_insert_with_key(|path| {
            // Only a file can be read to its end: a pipe would be waited for.
            let is_file = fs::metadata(path).is_ok_and(|about| about.is_file());
            let bytes = is_file.then(|| fs::read(path).ok()).flatten()?;
            Some(Digest::of_bytes(&bytes))
        })
    }

    /// The path below the site of something in it, with links followed.
    pub(super) fn inside(&self, path: &Path) -> Option<String> {
        let path = path.canonicalize().ok()?;
        path.strip_prefix(&self.root).ok()?.to_str().map(str::to_owned)
    }
}

/// Whether this is a folder, or lies in one, that is left out.
fn is_left_out(path: &str) -> bool {
    let name = Path::new(path).file_name().and_then(OsStr::to_str);
    LEFT_OUT.iter().any(|left_out| name == Some(left_out))
}

/// A path below the site, of a folder and a name.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The folder that something lies in.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_seen_without_what_others_write_to() {
        let site = tempfile::tempdir().unwrap();
        for folder in ["hosts/web", ".git/objects", "target/debug", "state/cache"] {
            fs::create_dir_all(site.path().join(folder)).unwrap();
        }
        fs::write(site.path().join("hosts/web/default.nix"), "{ }").unwrap();
        let tree = Tree::walk(site.path(), &site.path().canonicalize().unwrap().join("state/cache")).unwrap();
        assert_eq!(tree.folders().collect::<Vec<_>>(), ["", "hosts", "hosts/web", "state"]);
        assert_eq!(tree.inside(&site.path().join("hosts/../hosts/web")).as_deref(), Some("hosts/web"));
        assert_eq!(tree.content("hosts/web/default.nix"), Some(Digest::of_bytes(b"{ }")));
        assert_eq!((tree.content("nothing"), tree.odd()), (None, None));
        let pipe = site.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        assert_eq!(tree.content("pipe"), None, "nobody waits for what comes through a pipe");
    }

    #[test]
    fn a_link_out_of_the_site_is_odd_and_one_within_it_or_into_the_store_is_not() {
        let site = tempfile::tempdir().unwrap();
        let walk = || Tree::walk(site.path(), Path::new("/nowhere")).unwrap();
        std::os::unix::fs::symlink("/nix/store", site.path().join("result")).unwrap();
        std::os::unix::fs::symlink(".", site.path().join("self")).unwrap();
        let before = walk();
        assert_eq!(before.odd(), None);
        std::os::unix::fs::symlink("/etc", site.path().join("etc")).unwrap();
        let after = walk();
        assert!(after.odd().is_some_and(|odd| odd.ends_with("/etc` leads out of the site")));
        assert_ne!(before.links(), after.links());
    }
}
