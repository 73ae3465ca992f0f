//! Accounts that a machine has from its first boot on, and the keys that open them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use orch_model::UserName;
use serde_json::Value as Json;

use super::Given;
use super::diary::Diary;
use super::document::{Document, User};
use crate::accounts::{self, Account};
use crate::error::ApplyError;
use crate::lines::Lines;
use crate::node::{Node, Owner, Wanted};
use crate::settings_file::SettingsFile;

const PASSWD: &str = "/etc/passwd";
const RULES: &str = "/etc/sudoers.d/90-cloud-init-users";
const KEYS: &str = "authorized_keys";
const ALL: &str = "ALL=(ALL) NOPASSWD:ALL";

/// Makes the accounts. The platform's is made unless the user data has a list of its own without it.
pub(super) fn make(node: &Node, given: &Given, document: &Document, diary: &mut Diary) {
    let is_default = |user: &User| matches!(user, User::Named(name) if name == "default");
    let has_default = document.users.as_ref().is_none_or(|users| users.iter().any(is_default));
    let keys: Vec<&str> = given.keys.iter().chain(&document.keys).map(String::as_str).collect();
    let mut rules = Vec::new();
    let platforms = given.user.as_deref().filter(|_| has_default);
    if let Some(name) = platforms.filter(|name| *name != "root") {
        diary.note(&format!("make the account `{name}`"), account(node, name, None, &keys));
        rules.push(format!("{name} {ALL}"));
    } else if !keys.is_empty() {
        diary.note("let keys open `root`", account(node, "root", None, &keys));
    }
    for user in document.users.iter().flatten().filter(|user| !is_default(user)) {
        let (name, shell, keys) = match user {
            User::Named(name) => (name, None, Vec::new()),
            User::Described { name, sudo, shell, ssh_authorized_keys } => {
                rules.extend(rules_of(name, sudo));
                (name, shell.as_deref(), ssh_authorized_keys.iter().map(String::as_str).collect())
            }
        };
        diary.note(&format!("make the account `{name}`"), account(node, name, shell, &keys));
    }
    if !rules.is_empty() {
        let text = format!("{}\n", rules.join("\n"));
        diary.note("let accounts become root", SettingsFile::new(RULES, text).mode(0o440).write(node));
    }
}

/// A rule is a line, and stays one.
fn rules_of(name: &str, sudo: &Json) -> Vec<String> {
    let alone = std::slice::from_ref(sudo);
    let rules = sudo.as_array().map_or(alone, Vec::as_slice).iter().filter_map(Json::as_str);
    let lines = rules.filter(|rule| !rule.chars().any(char::is_control));
    lines.map(|rule| format!("{name} {rule}")).collect()
}

fn account(node: &Node, name: &str, shell: Option<&str>, keys: &[&str]) -> Result<(), ApplyError> {
    let parsed: Result<UserName, _> = name.parse();
    let name = parsed.map_err(|_| ApplyError::Impossible("this is no name of an account".into()))?;
    if !accounts::is_possible(node, &name) {
        return Err(ApplyError::Impossible(accounts::NO_ACCOUNTS.into()));
    }
    let account = if name.as_str() == "root" {
        let root = || Account { owner: Owner::ROOT, home: PathBuf::from("/root") };
        accounts::find(node, &name)?.unwrap_or_else(root)
    } else {
        accounts::make(node, &name)?
    };
    if !accounts::has_home(node, &account)? {
        accounts::make_home(node, &account)?;
    }
    if let Some(shell) = shell.filter(|shell| node.is_file(Path::new(shell))) {
        set_shell(node, name.as_str(), shell)?;
    }
    let_in(node, &account, keys)
}

fn set_shell(node: &Node, name: &str, shell: &str) -> Result<(), ApplyError> {
    let old = node.read(Path::new(PASSWD))?.unwrap_or_default();
    let mut lines = Lines::of(&old);
    let begin = format!("{name}:");
    let Some(line) = lines.iter().find(|line| line.starts_with(begin.as_bytes())) else { return Ok(()) };
    let line = String::from_utf8_lossy(line).into_owned();
    let Some((before, _)) = line.rsplit_once(':') else { return Ok(()) };
    lines.set(format!("{before}:{shell}").as_bytes(), |line| line.starts_with(begin.as_bytes()));
    SettingsFile::new(PASSWD, lines.into_bytes()).write(node)
}

/// Adds keys to those that open an account.
fn let_in(node: &Node, account: &Account, keys: &[&str]) -> Result<(), ApplyError> {
    if keys.is_empty() {
        return Ok(());
    }
    let path = account.home.join(".ssh");
    let folder = if let Some(folder) = node.folder(&path)? {
        folder
    } else {
        let folder = node.make_folder(&path, 0o700)?;
        folder.give(account.owner, 0o700)?;
        folder
    };
    let mut lines = Lines::of(&folder.text(OsStr::new(KEYS))?.unwrap_or_default());
    for key in keys.iter().map(|key| key.trim()).filter(|key| !key.chars().any(char::is_control)) {
        if !lines.iter().any(|line| line == key.as_bytes()) {
            lines.push(key.as_bytes());
        }
    }
    let content = lines.into_bytes();
    folder.write(OsStr::new(KEYS), &Wanted { content: &content, mode: 0o600, owner: account.owner })
}
