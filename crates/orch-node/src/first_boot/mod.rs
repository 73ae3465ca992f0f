//! The first boot of a machine that a platform made: what cloud-init does with what the machine is given, as far as orch and
//! those who try it out need it. Done once for each life of a machine.
//!
//! As with cloud-init, what cannot be done is written down, and the machine comes up all the same.

mod commands;
mod diary;
mod document;
mod files;
mod host_keys;
mod hostname;
mod ssh_restart;
mod units;
mod users;

use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use crate::error::ApplyError;
use crate::node::Node;
use crate::settings_file::SettingsFile;
use diary::Diary;
use document::{Document, UserData};

const INSTANCE: &str = "/var/lib/cloud/data/instance-id";
const RESULT: &str = "/var/lib/cloud/data/result.json";

/// What a machine is given by its platform.
#[derive(Deserialize)]
pub(crate) struct Given {
    /// Names this life of the machine.
    instance: String,
    hostname: String,
    /// The account that the platform prepares; without one it is root's that the keys open.
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    keys: Vec<String>,
    /// What the maker of its image says is to be done first.
    #[serde(default)]
    vendor_data: String,
    #[serde(default)]
    user_data: String,
}

/// Reads user data and does nothing with it: for those who feed it what is none.
#[doc(hidden)]
pub fn read_user_data(text: &str) -> Result<(), String> {
    UserData::of(text).map(drop)
}

/// Does what the machine is given, unless that was done before in this life.
pub(crate) fn first_boot(node: &Node, given: &Given) -> Result<(), ApplyError> {
    let done = node.read(Path::new(INSTANCE))?;
    if done.is_some_and(|done| done.trim_ascii() == given.instance.as_bytes()) {
        return Ok(());
    }
    let mut diary = Diary::default();
    if let Ok(UserData::Document(vendor)) = UserData::of(&given.vendor_data) {
        carry_out(node, &vendor, &mut diary);
    }
    match UserData::of(&given.user_data) {
        Ok(UserData::Nothing) => prepare(node, given, &Document::default(), &mut diary),
        Ok(UserData::Document(document)) => prepare(node, given, &document, &mut diary),
        Ok(UserData::Script(script)) => {
            prepare(node, given, &Document::default(), &mut diary);
            diary.note("run the script", commands::run_script(node, script));
        }
        Err(why) => {
            diary.fail(&why);
            prepare(node, given, &Document::default(), &mut diary);
        }
    }
    diary.write(node)?;
    let result = json!({ "v1": { "datasource": "orch lab", "errors": diary.errors() } });
    SettingsFile::new(RESULT, format!("{result:#}\n")).write(node)?;
    // Last: whatever was cut off is done again.
    SettingsFile::new(INSTANCE, format!("{}\n", given.instance)).write(node)
}

/// In the order of cloud-init, but for files, which may belong to users and so come after them.
fn prepare(node: &Node, given: &Given, document: &Document, diary: &mut Diary) {
    for key in &document.unknown {
        diary.say(&format!("`{key}` is not something that is done here"));
    }
    let name = document.hostname.as_ref().unwrap_or(&given.hostname);
    diary.note("set the host name", hostname::set(node, name));
    diary.note("write its SSH host keys", host_keys::write(node, document));
    users::make(node, given, document, diary);
    carry_out(node, document, diary);
}

/// Writes the files of a document and runs its commands.
fn carry_out(node: &Node, document: &Document, diary: &mut Diary) {
    for file in &document.write_files {
        diary.note(&format!("write `{}`", file.path), files::write(node, file));
    }
    for command in document.bootcmd.iter().chain(&document.runcmd) {
        // Without its words, which may be secret.
        diary.note("run a command", commands::run(node, command));
    }
}

#[cfg(test)]
mod tests;
