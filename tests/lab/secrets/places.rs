//! Where a value could have come to lie: files and their names, wherever links in them lead, and disks in their raw bytes.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{SeekFrom, seek, syncfs};
use rustix::io::Errno;

use super::needles::Needles;
use crate::common::Lab;

/// File systems that are in memory alone: a secret may be there, and nowhere else.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// What of it is in the files below a folder, but for those that are passed over.
pub(crate) fn below(needles: &Needles, folder: &Path, passed: &[&Path]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let device = fs::symlink_metadata(folder).map(|about| about.dev()).ok();
    walk(needles, folder, passed, device, &mut found);
    found
}

/// What of it is on the disk of a running machine: in its raw bytes where it has one with a size, and in its files.
pub(crate) fn on_disk(needles: &Needles, lab: &Lab, machine: &str) -> BTreeSet<String> {
    let mut found = in_files(needles, lab, machine);
    let image = lab.machine(machine).join("disk.img");
    if image.exists() {
        syncfs(File::open(lab.root(machine).join("var/lib/orch")).unwrap()).unwrap();
        found.extend(in_file(needles, &image));
    }
    found
}

/// What of it is in the files on the disk of a running machine: not in what was removed from there.
pub(crate) fn in_files(needles: &Needles, lab: &Lab, machine: &str) -> BTreeSet<String> {
    let root = lab.root(machine);
    let tops = disks(lab, machine).into_iter().map(|top| root.join(top.trim_start_matches('/')));
    tops.flat_map(|top| below(needles, &top, &[])).collect()
}

/// What of it is in the memory that a running machine has as files.
pub(crate) fn in_memory(needles: &Needles, lab: &Lab, machine: &str) -> BTreeSet<String> {
    let root = lab.root(machine);
    let tops = mounts(lab, machine, |kind| IN_MEMORY.contains(&kind));
    tops.iter().flat_map(|top| below(needles, &root.join(top.trim_start_matches('/')), &[])).collect()
}

/// What of it is in files that lie where everybody may leave some, written since then.
pub(crate) fn loose(needles: &Needles, since: SystemTime) -> BTreeSet<String> {
    let folders = [env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    let entries = folders.into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let is_new = |path: &PathBuf| {
        let about = fs::symlink_metadata(path);
        about.is_ok_and(|about| about.is_file() && about.modified().is_ok_and(|at| at >= since))
    };
    entries.map(|entry| entry.path()).filter(is_new).flat_map(|path| in_file(needles, &path)).collect()
}

/// Where a machine has file systems of its own disk.
fn disks(lab: &Lab, machine: &str) -> Vec<String> {
    let root = lab.root(machine);
    let own = fs::metadata(root.join("var/lib/orch")).unwrap().dev();
    let is_own = |top: &String| {
        fs::metadata(root.join(top.trim_start_matches('/'))).is_ok_and(|about| about.dev() == own)
    };
    mounts(lab, machine, |kind| !IN_MEMORY.contains(&kind)).into_iter().filter(is_own).collect()
}

/// Where a machine has file systems of some kinds.
fn mounts(lab: &Lab, machine: &str, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{}/mountinfo", lab.init(machine).unwrap())).unwrap();
    let kind = |line: &str| line.split_once(" - ")?.1.split(' ').next().map(str::to_owned);
    let lines = text.lines().filter(|line| kind(line).is_some_and(|kind| is_meant(&kind)));
    lines.filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect()
}

fn walk(
    needles: &Needles,
    folder: &Path,
    passed: &[&Path],
    device: Option<u64>,
    found: &mut BTreeSet<String>,
) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // What was there a moment ago may be gone.
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if passed.contains(&path.as_path()) {
            continue;
        }
        found.extend(named(needles.in_bytes(entry.file_name().as_bytes()), "the name of", &path));
        if about.is_dir() && Some(about.dev()) == device {
            walk(needles, &path, passed, device, found);
        } else if about.is_symlink() {
            let to = fs::read_link(&path).unwrap_or_default();
            found.extend(named(needles.in_bytes(AsRef::<OsStr>::as_ref(&to).as_bytes()), "the link", &path));
        } else if about.is_file() && Some(about.dev()) == device {
            found.extend(in_file(needles, &path));
        }
    }
}

fn in_file(needles: &Needles, path: &Path) -> BTreeSet<String> {
    match File::open(path) {
        Ok(file) => {
            named(needles.in_stream(&mut Written { file: &file, at: 0, until: 0 }).unwrap(), "", path)
        }
        Err(_) => BTreeSet::new(),
    }
}

fn named(found: BTreeSet<String>, how: &str, path: &Path) -> BTreeSet<String> {
    found.into_iter().map(|what| format!("{what} in {how} {}", path.display())).collect()
}

/// What was ever written to a file: a disk of a gigabyte is holes for the most part.
struct Written<'f> {
    file: &'f File,
    at: u64,
    until: u64,
}

impl Read for Written<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.until {
            match seek(self.file, SeekFrom::Data(self.at)) {
                Ok(data) => {
                    self.at = data;
                    self.until = seek(self.file, SeekFrom::Hole(data))?;
                }
                Err(Errno::NXIO) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        }
        let most = usize::try_from(self.until - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
