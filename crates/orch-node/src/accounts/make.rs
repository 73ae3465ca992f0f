//! Making an account: its lines in the tables, the one in `/etc/passwd` last, so that who is there is there whole.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use orch_model::UserName;
use rustix::fs::FlockOperation;

use super::home::make_home;
use super::table::Table;
use super::{Account, FIRST_UID, LAST_UID, PASSWD, find, home, read};
use crate::error::ApplyError;
use crate::node::{Found, Node, Owner, Wanted, split};

const GROUP: &str = "/etc/group";
const SHADOW: &str = "/etc/shadow";
const GSHADOW: &str = "/etc/gshadow";

/// How long other programs wait for the lock of the tables too.
const LOCK_LIMIT: Duration = Duration::from_secs(15);

/// Makes an account with its home. Repeated after a cut, it goes on where that happened.
pub(crate) fn make(node: &Node, name: &UserName) -> Result<Account, ApplyError> {
    let _lock = lock(node)?;
    if let Some(account) = find(node, name)? {
        return Ok(account);
    }
    let home = home(node, name)?;
    let uid = free_uid(node, name, &home)?;
    let gid = make_group(node, name, uid)?;
    let account = Account { owner: Owner { uid, gid }, home };
    make_shadows(node, name)?;
    make_home(node, &account)?;
    let (uid, gid, home) = (uid.to_string(), gid.to_string(), account.home.display().to_string());
    append(node, PASSWD, 0o644, &[name.as_str(), "x", &uid, &gid, "", &home, shell(node)])?;
    Ok(account)
}

/// The lock that every program takes which writes these tables.
fn lock(node: &Node) -> Result<rustix::fd::OwnedFd, ApplyError> {
    let path = Path::new("/etc/.pwd.lock");
    let lock = node.make_folder(Path::new("/etc"), 0o755)?.open_lock(OsStr::new(".pwd.lock"))?;
    let deadline = Instant::now() + LOCK_LIMIT;
    // The kernel knows no time limit for this wait, and whoever has the lock has it for a moment.
    while let Err(error) = rustix::fs::fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive) {
        if Instant::now() > deadline {
            return Err(ApplyError::file("lock", path)(error));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(lock)
}

/// The number that a home which was made before a cut already has; else the first that nobody has.
fn free_uid(node: &Node, name: &UserName, home: &Path) -> Result<u32, ApplyError> {
    let (users, groups) = (read(node, PASSWD)?, read(node, GROUP)?);
    let is_free = |uid: &u32| {
        (FIRST_UID..=LAST_UID).contains(uid)
            && users.names_with(2, *uid).next().is_none()
            && groups.names_with(2, *uid).all(|group| group == name.as_str())
    };
    let left = node.folder(home)?.map(|home| home.owner()).transpose()?.map(|owner| owner.uid);
    let left = left.filter(is_free);
    let of_group = groups.line(name.as_str()).and_then(|fields| fields.get(2)?.parse().ok()).filter(is_free);
    left.or(of_group)
        .or_else(|| (FIRST_UID..=LAST_UID).find(is_free))
        .ok_or_else(|| ApplyError::Impossible(format!("no number is left for the account `{name}`")))
}

/// The account's own group. One of its name that is there may be what a cut left; one that others are in, or that the
/// system has a meaning for, would give the account what nobody asked for.
fn make_group(node: &Node, name: &UserName, uid: u32) -> Result<u32, ApplyError> {
    let groups = read(node, GROUP)?;
    if let Some(fields) = groups.line(name.as_str()) {
        let gid = fields.get(2).and_then(|text| text.parse().ok());
        let users = read(node, PASSWD)?;
        let is_nobodys = |gid: &u32| {
            let has_members = fields.get(3).is_some_and(|members| !members.is_empty());
            let is_persons = (FIRST_UID..=LAST_UID).contains(gid);
            is_persons && !has_members && users.names_with(3, *gid).next().is_none()
        };
        let why =
            format!("there is a group `{name}` which is not the account's own; it would be its first group");
        return gid.filter(is_nobodys).ok_or_else(|| ApplyError::refused(Path::new(GROUP), why));
    }
    let taken: Vec<u32> = groups.numbers(2).collect();
    let gid = std::iter::once(uid).chain(FIRST_UID..=LAST_UID).find(|gid| !taken.contains(gid));
    let gid =
        gid.ok_or_else(|| ApplyError::Impossible(format!("no number is left for the group `{name}`")))?;
    append(node, GROUP, 0o644, &[name.as_str(), "x", &gid.to_string(), ""])?;
    Ok(gid)
}

/// No password opens it. It is `*` and not `!`: that would lock the account for keys too where sshd works without PAM.
fn make_shadows(node: &Node, name: &UserName) -> Result<(), ApplyError> {
    let name = name.as_str();
    make_shadow(node, GSHADOW, &[name, "!", "", ""])?;
    make_shadow(node, SHADOW, &[name, "*", "19000", "0", "99999", "7", "", "", ""])
}

/// Adds a line to a table of passwords, where there is such a table and no such line.
fn make_shadow(node: &Node, path: &str, fields: &[&str]) -> Result<(), ApplyError> {
    if !node.has(path) || read(node, path)?.line(fields[0]).is_some() {
        return Ok(());
    }
    append(node, path, 0o640, fields)
}

fn shell(node: &Node) -> &'static str {
    if node.is_file(Path::new("/bin/bash")) { "/bin/bash" } else { "/bin/sh" }
}

/// Adds a line to a table, which keeps its owner and mode.
fn append(node: &Node, path: &str, mode_of_new: u32, fields: &[&str]) -> Result<(), ApplyError> {
    let (folder, name) = split(Path::new(path)).expect("a table has a name");
    let folder = node.make_folder(folder, 0o755)?;
    let (content, mode, owner) = match folder.find(name, usize::MAX)? {
        Found::File { content, mode, owner, .. } => (content, mode, owner),
        Found::Nothing => (Vec::new(), mode_of_new, Owner::ROOT),
        _ => return Err(ApplyError::refused(Path::new(path), "it is not a file")),
    };
    let mut table = Table::of(&content);
    table.push(fields);
    folder.write(name, &Wanted { content: &table.into_bytes(), mode, owner })
}
