//! Commands that a machine runs at its first boot.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;

use super::document::Command;
use super::units;
use crate::error::ApplyError;
use crate::node::{Node, Owner, Wanted};
use crate::tool::Tool;

/// How long one of them may take.
const LIMIT: Duration = Duration::from_mins(10);
const SCRIPTS: &str = "/var/lib/cloud/scripts";
const SCRIPT: &str = "user-data";

/// Runs a command. On a tree of files nothing is run.
pub(super) fn run(node: &Node, command: &Command) -> Result<(), ApplyError> {
    let words = words(command);
    let [program, args @ ..] = words.as_slice() else { return Ok(()) };
    if !node.is_real() {
        return Ok(());
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if program == "systemctl" && !units::has_systemd(node) {
        return units::change(node, &args);
    }
    Tool::at(program).need(&args, &[], LIMIT).map(drop)
}

/// A line is for a shell, but for one that only speaks to systemd: who reads it as words finds out what is meant.
fn words(command: &Command) -> Vec<String> {
    match command {
        Command::Words(words) => words.iter().map(word).collect(),
        Command::Line(line) => {
            let words: Vec<String> = line.split_whitespace().map(String::from).collect();
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " -._@".contains(letter);
            if words.first().is_some_and(|word| word == "systemctl") && line.chars().all(is_plain) {
                return words;
            }
            vec!["sh".into(), "-c".into(), line.clone()]
        }
    }
}

fn word(word: &Json) -> String {
    word.as_str().map_or_else(|| word.to_string(), String::from)
}

/// Runs a script that is the user data itself.
pub(super) fn run_script(node: &Node, script: &str) -> Result<(), ApplyError> {
    let folder = node.make_folder(Path::new(SCRIPTS), 0o755)?;
    let wanted = Wanted { content: script.as_bytes(), mode: 0o700, owner: Owner::ROOT };
    folder.write(OsStr::new(SCRIPT), &wanted)?;
    if !node.is_real() {
        return Ok(());
    }
    Tool::at(Path::new(SCRIPTS).join(SCRIPT)).need(&[], &[], LIMIT).map(drop)
}
