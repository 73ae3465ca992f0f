//! Files that hold a secret in clear, by what only secrets look like. What is found is named by its place, and not shown.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use super::Findings;

/// What begins a secret wherever it stands.
const SIGNS: [(&str, &str); 2] =
    [("AGE-SECRET-KEY-1", "an age identity"), ("PRIVATE KEY-----", "a private key")];
/// Folders of a site that are not its files.
const SKIPPED: [&str; 3] = [".git", "target", "result"];
/// How much of a file is looked at, how many files, and how deep.
const LARGEST: u64 = 1 << 20;
const MOST: usize = 20_000;
const DEEPEST: usize = 12;

/// Looks through the files of a site. Those below `secrets/` that are no sops files are told already.
pub(super) fn look(root: &Path, findings: &mut Findings) {
    let mut left = MOST;
    walk(root, Path::new(""), (DEEPEST, &mut left), findings);
    if left == 0 {
        let what = format!("the site has more than {MOST} files, and not all were looked at");
        findings.add(what, "keep what is no site elsewhere".into());
    }
}

fn walk(root: &Path, folder: &Path, (deep, left): (usize, &mut usize), findings: &mut Findings) {
    let mut entries: Vec<_> = fs::read_dir(root.join(folder))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    entries.sort();
    for name in entries {
        let path = folder.join(&name);
        // Links are not followed: they lead to what is no file of the site, or to one that is met anyway.
        let Ok(about) = fs::symlink_metadata(root.join(&path)) else { continue };
        let is_skipped = SKIPPED.iter().any(|skipped| name == *skipped);
        if about.is_dir() && deep > 0 && !is_skipped {
            walk(root, &path, (deep - 1, left), findings);
        } else if about.is_file() && *left > 0 {
            *left -= 1;
            look_into(root, &path, findings);
        }
    }
}

fn look_into(root: &Path, path: &Path, findings: &mut Findings) {
    let mut bytes = zeroize::Zeroizing::new(Vec::new());
    let read = File::open(root.join(path)).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    let shown = path.display().to_string();
    if read.is_err() {
        return;
    }
    let found = SIGNS.into_iter().find_map(|(sign, noun)| Some((place(&bytes, sign)?, noun)));
    if let Some((line, noun)) = found {
        let what = format!("`{shown}` holds {noun} in clear, at line {line}");
        findings.add(
            what,
            "move it out of the site or into a sops file, and change it: it was in a plain file".into(),
        );
    }
}

/// The line, from one, in which a text stands with something behind it: the sign alone is a word about keys.
fn place(bytes: &[u8], sign: &str) -> Option<usize> {
    let windows = bytes.windows(sign.len()).enumerate();
    windows.filter(|(_, window)| *window == sign.as_bytes()).find_map(|(at, _)| line_of_key(bytes, at, sign))
}

fn line_of_key(bytes: &[u8], at: usize, sign: &str) -> Option<usize> {
    let behind = &bytes[at + sign.len()..];
    let follows = behind.iter().skip_while(|byte| byte.is_ascii_whitespace() || **byte == b'\\');
    let length =
        follows.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=,:-\n\r".contains(byte)).count();
    (length >= 16).then(|| bytes[..at].split(|byte| *byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_clear_is_found_by_its_place_and_words_about_keys_are_not() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        let key = format!("AGE-SECRET-KEY-1{}", "Q".repeat(58));
        write("notes.md", "identities begin with `AGE-SECRET-KEY-1` and so on.\n");
        write("readme.md", &format!("`AGE-SECRET-KEY-1` begins one:\n{key}\n"));
        write("keys.txt", &format!("# mine\n{key}\n"));
        write("id", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n");
        fs::create_dir(root.path().join(".git")).unwrap();
        write(".git/config", &key);
        let mut findings = Findings::default();
        look(root.path(), &mut findings);
        let told: Vec<&str> = findings.told.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            told,
            [
                "`id` holds a private key in clear, at line 1",
                "`keys.txt` holds an age identity in clear, at line 2",
                "`readme.md` holds an age identity in clear, at line 2"
            ]
        );
        assert!(!format!("{findings:?}", findings = findings.told).contains("QQQQ"));
    }
}
