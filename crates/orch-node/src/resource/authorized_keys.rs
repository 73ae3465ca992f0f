//! The keys that open an account: a block of its `authorized_keys` between two lines of orch's. What is outside of the
//! block is the owner's and stays.
//!
//! The folder belongs to the owner, who may have put anything there. A link is never followed, and never replaced.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use orch_model::config::User;
use orch_model::{PublicKey, UserName};

use super::{Look, Resource};
use crate::accounts::{self, Account};
use crate::error::ApplyError;
use crate::lines::Lines;
use crate::node::{Folder, Node, Owner, Wanted};

const BEGIN: &[u8] = b"# orch: begin";
const END: &[u8] = b"# orch: end";
const FILE: &str = "authorized_keys";
const MODE: u32 = 0o600;

pub(super) struct AuthorizedKeys {
    user: UserName,
    keys: Vec<PublicKey>,
}

impl AuthorizedKeys {
    pub(super) fn new(user: &User) -> Self {
        Self { user: user.name.clone(), keys: user.ssh_keys.clone() }
    }

    fn account(&self, node: &Node) -> Result<Option<Account>, ApplyError> {
        let found = accounts::find(node, &self.user)?;
        let root = || Account { owner: Owner::ROOT, home: PathBuf::from("/root") };
        Ok(found.or_else(|| (self.user.as_str() == "root").then(root)))
    }

    /// The file as it should be.
    fn text(&self, old: &[u8]) -> Vec<u8> {
        let mut lines = Lines::of(&[]);
        for line in without_block(old) {
            lines.push(&line);
        }
        if !self.keys.is_empty() {
            lines.push(BEGIN);
            for key in &self.keys {
                lines.push(key.as_str().as_bytes());
            }
            lines.push(END);
        }
        lines.into_bytes()
    }
}

/// The lines that are not orch's. A beginning without an end is a line like any other, but for itself.
fn without_block(text: &[u8]) -> Vec<Vec<u8>> {
    let lines: Vec<Vec<u8>> = Lines::of(text).iter().map(<[u8]>::to_vec).collect();
    let mut kept = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((line, after)) = rest.split_first() {
        rest = after;
        if line != BEGIN {
            kept.push(line.clone());
        } else if let Some(end) = after.iter().position(|line| line == END) {
            rest = &after[end + 1..];
        }
    }
    kept
}

/// The folder of the keys must be its owner's or root's: whoever else it belongs to could change what opens the account.
fn check_owner(node: &Node, folder: &Folder, account: &Account) -> Result<(), ApplyError> {
    let owner = folder.owner()?;
    if !node.sets_owners() || owner.uid == account.owner.uid || owner.uid == 0 {
        return Ok(());
    }
    Err(ApplyError::refused(folder.path(), format!("it belongs to uid {}", owner.uid)))
}

impl Resource for AuthorizedKeys {
    fn kind(&self) -> &'static str {
        "ssh-keys"
    }

    fn name(&self) -> String {
        self.user.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        if !accounts::is_possible(node, &self.user) {
            return Ok(Look::skip(accounts::NO_ACCOUNTS));
        }
        let Some(account) = self.account(node)? else {
            return Ok(Look::Differs("there is no such account".into()));
        };
        let without =
            || if self.keys.is_empty() { Look::AsWanted } else { Look::Differs("there are none".into()) };
        let Some(folder) = node.folder(&account.home.join(".ssh"))? else { return Ok(without()) };
        check_owner(node, &folder, &account)?;
        let Some(old) = folder.text(OsStr::new(FILE))? else { return Ok(without()) };
        let new = self.text(&old);
        if self.keys.is_empty() && new == old {
            return Ok(Look::AsWanted);
        }
        let wanted = Wanted { content: &new, mode: MODE, owner: account.owner };
        Ok(Look::of(folder.difference(OsStr::new(FILE), &wanted)?))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let missing = || ApplyError::Impossible(format!("there is no account `{}`", self.user));
        let account = self.account(node)?.ok_or_else(missing)?;
        let folder = open(node, &account)?;
        check_owner(node, &folder, &account)?;
        let old = folder.text(OsStr::new(FILE))?.unwrap_or_default();
        let content = self.text(&old);
        folder.write(OsStr::new(FILE), &Wanted { content: &content, mode: MODE, owner: account.owner })
    }
}

/// Opens the folder of the keys, and makes it where it is not there.
fn open(node: &Node, account: &Account) -> Result<Folder, ApplyError> {
    let path: &Path = &account.home.join(".ssh");
    if let Some(folder) = node.folder(path)? {
        return Ok(folder);
    }
    if node.folder(&account.home)?.is_none() {
        return Err(ApplyError::refused(&account.home, "this home is not there"));
    }
    let folder = node.make_folder(path, 0o700)?;
    folder.give(account.owner, 0o700)?;
    Ok(folder)
}
