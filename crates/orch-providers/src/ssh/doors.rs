//! The files that people use after orch has ended: configurations for sessions, and pinned keys.
//!
//! Each is named by what it is for, not by the node's name alone: nodes of several manifests, hosts and sites may bear
//! the same one. Nobody says when they are done with such a file, so those that nobody has used for long are removed.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::config;
use super::folder;
use super::way::{self, Hop};

/// How long nobody has asked for a file, or read it where the disk knows that, before it is removed.
const STALE: Duration = Duration::from_hours(30 * 24);

/// The folder of these files.
#[derive(Debug)]
pub(super) struct Doors {
    folder: PathBuf,
}

impl Doors {
    /// The one under the folder that all drivers share.
    pub(super) fn under(base: &Path) -> Self {
        Self { folder: base.join("doors") }
    }

    /// The configuration of sessions on the last of these hops.
    pub(super) fn config(&self, hops: &[Hop]) -> PathBuf {
        let alias = hops.last().map_or("", |hop| &hop.alias);
        let mut words = vec![way::digest(hops)];
        words.extend(hops.iter().map(config::known_host));
        self.folder.join(format!("{alias}-{}.config", way::digest_of(&words)))
    }

    /// Pins the key of a hop in a file that stays.
    pub(super) fn pin(&self, hop: &Hop) -> Result<PathBuf, String> {
        // Named by what is in it: the same machine in another life, or on another way, is known by the same key.
        let line = config::known_host(hop);
        let file = self.folder.join(format!("{}-{}.known_hosts", hop.alias, way::digest_of(&[&line])));
        self.keep(&file, &line)?;
        Ok(file)
    }

    /// Writes a file that stays, or says that it is still wanted.
    pub(super) fn keep(&self, file: &Path, text: &str) -> Result<(), String> {
        let is_there = fs::read_to_string(file).is_ok_and(|there| there == text);
        let kept = if is_there { touch(file) } else { self.write(file, text) };
        kept.map_err(|error| format!("the file `{}` cannot be written: {error}", file.display()))
    }

    fn write(&self, file: &Path, text: &str) -> io::Result<()> {
        folder::make_private(&self.folder)?;
        folder::write(file, text)
    }

    /// Removes what nobody has used for long.
    pub(super) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten().filter(is_stale) {
            // Another driver may have been quicker.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn touch(file: &Path) -> io::Result<()> {
    fs::File::options().write(true).open(file)?.set_modified(SystemTime::now())
}

fn is_stale(entry: &DirEntry) -> bool {
    let Ok(data) = entry.metadata() else { return false };
    let used = [data.modified(), data.accessed()].into_iter().flatten().max();
    used.is_some_and(|used| used.elapsed().is_ok_and(|unused| unused > STALE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(key: &str) -> Hop {
        Hop {
            alias: "web".into(),
            address: "10.0.0.2".into(),
            port: 22,
            user: "ops".into(),
            host_keys: vec![format!("ssh-ed25519 {key}").parse().unwrap()],
            proxy: None,
            generation: "1".into(),
        }
    }

    const ONE: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIE";
    const OTHER: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIF";

    #[test]
    fn two_nodes_of_one_name_never_share_a_file_and_one_node_keeps_its_own() {
        let base = tempfile::tempdir().unwrap();
        let doors = Doors::under(base.path());
        let (one, other) = (doors.pin(&hop(ONE)).unwrap(), doors.pin(&hop(OTHER)).unwrap());
        assert_ne!(one, other);
        assert_ne!(doors.config(&[hop(ONE)]), doors.config(&[hop(OTHER)]));
        assert!(fs::read_to_string(&one).unwrap().contains(ONE));
        assert!(fs::read_to_string(&other).unwrap().contains(OTHER));
        let restarted = Hop { generation: "2".into(), address: "10.0.0.3".into(), ..hop(ONE) };
        assert_eq!(doors.pin(&restarted).unwrap(), one, "what people were given stays good");
    }

    #[test]
    fn what_nobody_has_used_for_long_is_swept_and_what_is_asked_for_again_is_not() {
        let base = tempfile::tempdir().unwrap();
        let doors = Doors::under(base.path());
        let [old, asked, fresh] = ["old", "asked", "fresh"].map(|name| doors.folder.join(name));
        for file in [&old, &asked, &fresh] {
            doors.keep(file, "text").unwrap();
        }
        let long_ago = SystemTime::now() - 2 * STALE;
        let times = fs::FileTimes::new().set_accessed(long_ago).set_modified(long_ago);
        for file in [&old, &asked] {
            fs::File::options().write(true).open(file).unwrap().set_times(times).unwrap();
        }
        doors.keep(&asked, "text").unwrap();
        doors.sweep();
        assert_eq!([old, asked, fresh].map(|file| file.exists()), [false, true, true]);
    }
}
