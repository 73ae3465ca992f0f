//! What `sshd` says of its settings as they will be, before they are.
//!
//! It is shown the very files that will count: its own, with the include that orch adds, in which the folder of settings is
//! spelled out as what will lie there, the draft in the place of the file that it becomes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::due_reload::DueReload;
use crate::error::ApplyError;
use crate::lines::Lines;
use crate::node::Node;
use crate::settings_file::SettingsFile;
use crate::ssh_server;
use crate::tool::Tool;

pub(super) const MAIN: &str = "/etc/ssh/sshd_config";
pub(super) const FOLDER: &str = "/etc/ssh/sshd_config.d";
const INCLUDE: &str = "Include /etc/ssh/sshd_config.d/*.conf";
const TRIAL: &str = "/etc/ssh/.orch-trial";
const LIMIT: Duration = Duration::from_secs(20);

/// Whether the server reads what lies at this place.
pub(super) fn reads(place: &Path) -> bool {
    let is_in_folder = place.parent() == Some(Path::new(FOLDER));
    place == Path::new(MAIN) || (is_in_folder && place.extension() == Some(OsStr::new("conf")))
}

/// Has the server judge its settings as they are once `draft` is at `place`, and notes that it is to be told of them.
pub(super) fn admit(node: &Node, place: &Path, draft: &Path) -> Result<(), ApplyError> {
    let Some(sshd) = ssh_server::program(node) else { return Ok(()) };
    judge(node, &sshd, &trial(node, place, draft)?)?;
    DueReload::SSHD.set(node)
}

/// The server's own file with the include of the folder; nothing where it has it.
pub(super) fn with_include(main: &[u8]) -> Option<Vec<u8>> {
    if includes_folder(main) {
        return None;
    }
    let mut lines = Lines::of(main);
    lines.push_front(INCLUDE.as_bytes());
    Some(lines.into_bytes())
}

/// Whether the server's own configuration reads the folder of orch's file, for every connection.
pub(super) fn includes_folder(main: &[u8]) -> bool {
    settings(main)
        .any(|(key, value)| key == "include" && value.split_whitespace().any(|word| tail_of(word).is_some()))
}

/// The settings of a text that hold for every connection, in order: what follows a `Match` holds for some.
pub(super) fn settings(text: &[u8]) -> impl Iterator<Item = (String, String)> {
    let lines: Vec<Vec<u8>> = Lines::of(text).iter().map(<[u8]>::to_vec).collect();
    lines.into_iter().filter_map(|line| setting(&line)).take_while(|(key, _)| key != "match")
}

/// The setting in a line: its key in small letters, and its value.
fn setting(line: &[u8]) -> Option<(String, String)> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let is_between = |c: char| c.is_whitespace() || c == '=';
    let (key, value) = line.split_once(is_between).unwrap_or((line, ""));
    Some((key.to_ascii_lowercase(), value.trim_start_matches(is_between).to_string()))
}

/// What the names end in that a word of an include takes out of the folder; nothing where it is about something else.
fn tail_of(word: &str) -> Option<&str> {
    let word = word.trim_matches('"');
    word.strip_prefix("/etc/ssh/").unwrap_or(word).strip_prefix("sshd_config.d/*")
}

/// The server's own file, with every include of the folder spelled out.
fn trial(node: &Node, place: &Path, draft: &Path) -> Result<Vec<u8>, ApplyError> {
    let is_main = place == Path::new(MAIN);
    let main = node.read(if is_main { draft } else { Path::new(MAIN) })?.unwrap_or_default();
    // Where it is the draft itself, nobody adds anything to it.
    let main = if is_main { main } else { with_include(&main).unwrap_or(main) };
    let mut lines = Lines::of(&[]);
    for line in Lines::of(&main).iter() {
        match setting(line).filter(|(key, _)| key == "include") {
            Some((_, value)) => lines.push(spelled_out(node, &value, place, draft)?.as_bytes()),
            None => lines.push(line),
        }
    }
    Ok(lines.into_bytes())
}

fn spelled_out(node: &Node, value: &str, place: &Path, draft: &Path) -> Result<String, ApplyError> {
    let mut words = vec!["Include".to_string()];
    for word in value.split_whitespace() {
        let files =
            tail_of(word).map(|tail| files(node, tail, place, draft)).transpose()?.unwrap_or_default();
        if files.is_empty() {
            words.push(word.into());
        }
        words.extend(files.iter().map(|file| format!("\"{}\"", node.outside(file).display())));
    }
    Ok(words.join(" "))
}

/// What will lie in the folder under names with this end, in the order in which the server reads it.
fn files(node: &Node, tail: &str, place: &Path, draft: &Path) -> Result<Vec<PathBuf>, ApplyError> {
    let folder = Path::new(FOLDER);
    let mut names: Vec<OsString> = node.folder(folder)?.map_or(Ok(Vec::new()), |folder| folder.names())?;
    names.extend(place.strip_prefix(folder).map(OsString::from));
    names.sort();
    names.dedup();
    let is_read =
        |name: &OsString| !name.as_bytes().starts_with(b".") && name.as_bytes().ends_with(tail.as_bytes());
    let lies_at = |name: OsString| if folder.join(&name) == place { draft.into() } else { folder.join(name) };
    Ok(names.into_iter().filter(is_read).map(lies_at).collect())
}

fn judge(node: &Node, sshd: &Tool, text: &[u8]) -> Result<(), ApplyError> {
    SettingsFile::new(TRIAL, text).mode(0o600).write(node)?;
    ssh_server::make_run_folder(node)?;
    let path = node.outside(Path::new(TRIAL)).display().to_string();
    let judged = sshd.need(&["-t", "-f", &path], &[], LIMIT).map(drop);
    node.remove(Path::new(TRIAL))?;
    judged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_include_of_the_folder_is_known_however_it_is_written() {
        for (main, is_included) in [
            ("Include /etc/ssh/sshd_config.d/*.conf\n", true),
            ("  include=sshd_config.d/*\n", true),
            ("Include \"/etc/ssh/sshd_config.d/*.conf\" /etc/other\n", true),
            ("# Include /etc/ssh/sshd_config.d/*.conf\n", false),
            ("Include /etc/ssh/sshd_config.d/50-vendor.conf\n", false),
            ("Match User git\nInclude /etc/ssh/sshd_config.d/*.conf\n", false),
            ("", false),
        ] {
            assert_eq!(includes_folder(main.as_bytes()), is_included, "{main:?}");
        }
    }
}
