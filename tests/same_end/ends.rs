//! How a machine is in the end: every file with content, mode, owner and target, and what orch keeps there for itself.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use orch_model::{ApplyReport, Digest};
use serde_json::Value as Json;

/// Where orch keeps what is its own.
const OWN: &str = "var/lib/orch";
/// What only a node that pulls has there.
const OF_PULL: [&str; 3] = ["enrolment.json", "pull.json", "pull.lock"];

/// How a machine is. Two that are equal were brought to the same end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End(BTreeMap<PathBuf, Thing>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Thing {
    mode: u32,
    owner: (u32, u32),
    inside: Inside,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Inside {
    File(Digest, usize),
    Link(PathBuf),
    Folder,
    /// One that its owner may not read, where this is not root.
    Closed,
    /// A file of orch's, by what of it does not depend on how the configuration came.
    Own(Json),
}

impl End {
    pub(crate) fn of(root: &Path) -> Self {
        let mut things = BTreeMap::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(root).unwrap().to_path_buf();
                let data = fs::symlink_metadata(&path).unwrap();
                if is_of_pull(&name) {
                    continue;
                }
                let inside = if data.is_dir() {
                    folders.push(path);
                    Inside::Folder
                } else if data.is_symlink() {
                    Inside::Link(fs::read_link(path).unwrap())
                } else {
                    inside(root, &name)
                };
                things.insert(name, Thing { mode: data.mode(), owner: (data.uid(), data.gid()), inside });
            }
        }
        Self(things)
    }

    /// The same without what orch keeps for itself: that says how often it was tried.
    pub(crate) fn without_own(mut self) -> Self {
        self.0.retain(|path, _| !path.starts_with(OWN));
        self
    }

    /// The paths at which two machines differ, with both sides.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let paths = self.0.keys().chain(other.0.keys().filter(|path| !self.0.contains_key(*path)));
        let sides = paths.map(|path| (path, self.0.get(path), other.0.get(path)));
        let differing = sides.filter(|(_, one, other)| one != other);
        differing.map(|(path, one, other)| format!("{}: {one:?} and {other:?}", path.display())).collect()
    }
}

fn is_of_pull(path: &Path) -> bool {
    path.parent() == Some(Path::new(OWN)) && OF_PULL.iter().any(|name| path.ends_with(name))
}

fn inside(root: &Path, path: &Path) -> Inside {
    let Ok(bytes) = fs::read(root.join(path)) else { return Inside::Closed };
    let name = path.strip_prefix(OWN).ok().and_then(Path::file_name).and_then(OsStr::to_str);
    match name {
        Some("complete.json" | "failed.json") => Inside::Own(report(root, &bytes)),
        // Each machine makes its own, and what it holds is encrypted to them.
        Some(name @ ("age.key" | "keys.json" | "secrets.age")) => Inside::Own(format!("its {name}").into()),
        Some("apply.lock") => Inside::Own(signature(&bytes)),
        Some("apply.log") => Inside::Own(without_root(root, &String::from_utf8_lossy(&bytes)).into()),
        // `spec.json` among them: both have the very same bytes of the configuration.
        _ => Inside::File(Digest::of_bytes(&bytes), bytes.len()),
    }
}

/// A report as it is whoever brought the configuration, and whenever.
fn report(root: &Path, bytes: &[u8]) -> Json {
    let report: ApplyReport = serde_json::from_slice(bytes).unwrap();
    let mut report = serde_json::to_value(told(root, report)).unwrap();
    for differs in ["mode", "started_at", "finished_at"] {
        assert!(report.as_object_mut().unwrap().remove(differs).is_some());
    }
    report
}

/// What the worker wrote down of itself, but for which process it was.
fn signature(bytes: &[u8]) -> Json {
    let mut holder: Json = serde_json::from_slice(bytes).unwrap();
    for differs in ["pid", "started"] {
        assert!(holder.as_object_mut().unwrap().remove(differs).is_some());
    }
    holder
}

/// A report in words that do not say on which machine it was.
pub(crate) fn told(root: &Path, mut report: ApplyReport) -> ApplyReport {
    let neutral = |words: &mut Option<String>| {
        if let Some(words) = words {
            *words = without_root(root, words);
        }
    };
    neutral(&mut report.error);
    for resource in &mut report.resources {
        neutral(&mut resource.detail);
        neutral(&mut resource.skipped);
    }
    report
}

fn without_root(root: &Path, words: &str) -> String {
    words.replace(&root.display().to_string(), "")
}
