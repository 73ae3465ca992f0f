//! The accounts of the node, read from and written to its own tables. No program is asked: a node need not have one,
//! and a tree of files has none that would be its own.

mod home;
mod make;
mod table;

use std::path::{Path, PathBuf};

use orch_model::UserName;

use crate::error::ApplyError;
use crate::node::{Node, Owner};
use table::Table;

pub(crate) use home::{has_home, make_home};
pub(crate) use make::make;

const PASSWD: &str = "/etc/passwd";

/// The first number that is given to a person; those below are the system's.
pub(crate) const FIRST_UID: u32 = 1000;
/// The last one that is given; those above belong to ranges of containers and to `nobody`.
const LAST_UID: u32 = 59_999;

/// What is said where a node can have no account but root's.
pub(crate) const NO_ACCOUNTS: &str = "there is one user id alone here";

/// Where this exists, the node is one that knows root's number alone.
const ONE_ID: &str = "/run/orch/one-id";

/// Whether the node can have this account at all.
pub(crate) fn is_possible(node: &Node, name: &UserName) -> bool {
    name.as_str() == "root" || (node.knows_id(FIRST_UID) && !node.has(ONE_ID))
}

/// An account that there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) owner: Owner,
    pub(crate) home: PathBuf,
}

/// Finds an account.
pub(crate) fn find(node: &Node, name: &UserName) -> Result<Option<Account>, ApplyError> {
    let Some(fields) = read(node, PASSWD)?.line(name.as_str()) else { return Ok(None) };
    let number = |column: usize| fields.get(column).and_then(|text| text.parse().ok());
    let account = || {
        let home = fields.get(5).filter(|home| home.starts_with('/'))?;
        Some(Account { owner: Owner { uid: number(2)?, gid: number(3)? }, home: PathBuf::from(home) })
    };
    let broken = || ApplyError::refused(Path::new(PASSWD), format!("its line of `{name}` is broken"));
    account().map(Some).ok_or_else(broken)
}

/// The home of an account, also of one that is yet to be made.
pub(crate) fn home(node: &Node, name: &UserName) -> Result<PathBuf, ApplyError> {
    let new =
        || if name.as_str() == "root" { "/root".into() } else { Path::new("/home").join(name.as_str()) };
    Ok(find(node, name)?.map_or_else(new, |account| account.home))
}

/// Who a file is given to that should belong to an account.
pub(crate) fn owner(node: &Node, name: &UserName) -> Result<Owner, ApplyError> {
    match find(node, name)? {
        Some(account) => Ok(account.owner),
        // A tree of files may be so bare that it has no table yet.
        None if name.as_str() == "root" => Ok(Owner::ROOT),
        None => Err(ApplyError::Impossible(format!("there is no account `{name}` to own it"))),
    }
}

/// Reads a table; an empty one where there is none.
fn read(node: &Node, path: &str) -> Result<Table, ApplyError> {
    Ok(Table::of(&node.read(Path::new(path))?.unwrap_or_default()))
}
