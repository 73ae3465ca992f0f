//! What a tar archive holds, without unpacking it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::child::LIMIT;
use super::machine::program;
use crate::finish::finish_hearing;

/// The names in an archive, and where its links lead.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    names: BTreeSet<String>,
    links: BTreeMap<String, String>,
}

impl Listing {
    /// Reads an archive from beginning to end, once.
    pub(crate) fn of(archive: &Path) -> io::Result<Self> {
        let tar = program("tar").ok_or_else(|| io::Error::other("there is no `tar` here"))?;
        let mut command = Command::new(tar);
        command.args(["--numeric-owner", "-tvf"]).arg(archive).env("LC_ALL", "C").stdin(Stdio::null());
        let (mut listing, mut begun) = (Self::default(), Vec::new());
        let ended = finish_hearing(&mut command, LIMIT, |bytes| {
            begun.extend_from_slice(bytes);
            let whole = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            String::from_utf8_lossy(&begun[..whole]).lines().for_each(|line| listing.add(line));
            begun.drain(..whole);
        })?;
        if ended.status.success() {
            return Ok(listing);
        }
        let said = ended.said();
        Err(io::Error::other(format!("`{}` cannot be read: {said}", archive.display())))
    }

    /// Takes a line of `tar -tv`: what it is, whose, how large, a day and a time, and then its name.
    fn add(&mut self, line: &str) {
        let mut rest = line;
        for _ in 0..5 {
            let Some((_, after)) = rest.trim_start().split_once(' ') else { return };
            rest = after;
        }
        let about = rest.trim_start_matches(' ');
        let name = match line.chars().next() {
            Some('l') => {
                let Some((name, to)) = about.split_once(" -> ") else { return };
                self.links.insert(plain(name), to.to_owned());
                name
            }
            Some('h') => about.split_once(" link to ").map_or(about, |(name, _)| name),
            _ => about,
        };
        self.names.insert(plain(name));
    }

    /// Whether there is something at a path, as a machine would see it whose root the archive is.
    pub(crate) fn holds(&self, path: &str) -> bool {
        // As many as the kernel follows.
        let mut links_left = 40;
        let mut ahead: VecDeque<String> = path.split('/').map(str::to_owned).collect();
        let mut at: Vec<String> = Vec::new();
        while let Some(part) = ahead.pop_front() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    at.pop();
                    continue;
                }
                _ => at.push(part),
            }
            let Some(to) = self.links.get(&at.join("/")) else { continue };
            if links_left == 0 {
                return false;
            }
            links_left -= 1;
            if to.starts_with('/') {
                at.clear();
            } else {
                at.pop();
            }
            to.split('/').rev().for_each(|part| ahead.push_front(part.to_owned()));
        }
        self.names.contains(&at.join("/"))
    }
}

/// A name as all archives could have written it.
fn plain(name: &str) -> String {
    let parts = name.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_an_archive_holds_is_found_along_its_links_and_never_beyond_it() {
        if program("tar").is_none() {
            println!("skipped: there is no tar");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("usr/sbin")).unwrap();
        fs::create_dir_all(root.join("nix/store/1 system/bin")).unwrap();
        for file in ["usr/sbin/sshd", "nix/store/1 system/bin/sudo"] {
            fs::write(root.join(file), "").unwrap();
        }
        fs::hard_link(root.join("usr/sbin/sshd"), root.join("usr/sbin/again")).unwrap();
        for (to, link) in [
            ("usr/sbin", "sbin"),
            ("/nix/store/1 system", "system"),
            ("../system/./bin/sudo", "usr/sudo"),
            ("/etc/passwd", "passwd"),
            ("round", "round"),
            ("../../../../../etc/passwd", "up"),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        for names in [".", "usr sbin nix system passwd round up"] {
            let archive = folder.path().join("root.tar");
            let mut tar = Command::new("tar");
            tar.arg("-cf").arg(&archive).arg("-C").arg(&root).args(names.split(' '));
            assert!(tar.status().unwrap().success());
            let listing = Listing::of(&archive).unwrap();
            for there in
                ["/usr/sbin/sshd", "/sbin/sshd", "/system/bin/sudo", "/usr/sudo", "/usr/sbin", "/sbin/again"]
            {
                assert!(listing.holds(there), "{there} in {listing:?}");
            }
            for missing in ["/usr/sbin/sudo", "/passwd", "/up", "/round", "/etc/passwd"] {
                assert!(!listing.holds(missing), "{missing} in {listing:?}");
            }
        }
        fs::write(folder.path().join("none.tar"), "no archive").unwrap();
        assert!(Listing::of(&folder.path().join("none.tar")).is_err());
    }
}
