//! The home of an account. It belongs to its owner, who may have put anything into it: nothing in it is followed.

use std::ffi::OsStr;
use std::path::Path;

use super::{Account, FIRST_UID};
use crate::error::ApplyError;
use crate::node::{Folder, Found, Node, Wanted, split};

/// No file that newcomers are given is larger.
const LARGEST: usize = 1 << 20;

/// Whether an account has its home. Accounts of the system need none.
pub(crate) fn has_home(node: &Node, account: &Account) -> Result<bool, ApplyError> {
    Ok(account.owner.uid < FIRST_UID || node.folder(&account.home)?.is_some())
}

/// Makes the home of an account, with what newcomers are given. One that is there is kept as it is.
pub(crate) fn make_home(node: &Node, account: &Account) -> Result<(), ApplyError> {
    if let Some(home) = node.folder(&account.home)? {
        return take_over(node, &home, account);
    }
    let nameless = || ApplyError::refused(&account.home, "a home cannot be made there: its path has no name");
    let (above, name) = split(&account.home).ok_or_else(nameless)?;
    let above = node.make_folder(above, 0o755)?;
    // Filled under another name and then renamed: a home is there whole, or not at all.
    let draft = account.home.with_file_name(format!(".orch-home-{}", account.owner.uid));
    let folder = node.make_folder(&draft, 0o700)?;
    if let Some(skeleton) = node.folder(Path::new("/etc/skel"))? {
        copy(node, &skeleton, &folder, account)?;
    }
    folder.give(account.owner, 0o700)?;
    above.rename(draft.file_name().expect("a draft has a name"), name)
}

/// A home that was there before its account: root's is handed over, its own is kept, a stranger's is refused.
fn take_over(node: &Node, home: &Folder, account: &Account) -> Result<(), ApplyError> {
    let owner = home.owner()?;
    if !node.sets_owners() || owner.uid == account.owner.uid {
        return Ok(());
    }
    if owner.uid == 0 {
        return home.give(account.owner, 0o700);
    }
    Err(ApplyError::refused(home.path(), format!("it is to be a home, and belongs to uid {}", owner.uid)))
}

fn copy(node: &Node, from: &Folder, to: &Folder, account: &Account) -> Result<(), ApplyError> {
    for name in from.names()? {
        match from.find(&name, LARGEST)? {
            Found::File { content, mode, .. } => {
                to.write(&name, &Wanted { content: &content, mode, owner: account.owner })?;
            }
            Found::Folder => copy_folder(node, from, to, &name, account)?,
            Found::Link(target) => to.link(&name, &target)?,
            Found::Nothing | Found::Other => {}
        }
    }
    Ok(())
}

fn copy_folder(
    node: &Node,
    from: &Folder,
    to: &Folder,
    name: &OsStr,
    account: &Account,
) -> Result<(), ApplyError> {
    let Some(inner) = node.folder(&from.path().join(name))? else { return Ok(()) };
    let made = node.make_folder(&to.path().join(name), 0o700)?;
    copy(node, &inner, &made, account)?;
    made.give(account.owner, 0o755)
}
