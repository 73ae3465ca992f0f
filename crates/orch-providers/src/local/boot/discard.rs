//! Removing what a machine left: its files may belong to users that exist only in its user namespace.

use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::super::child::helper;
use super::super::machine::{Ids, Means};
use super::super::store::remove;
use super::outside::give_ids;
use super::talk::{GO, UNSHARED, expect, say};
use super::unshared::split_users;
use super::{BootError, DISCARD, Doing, Need};
use crate::ssh::chain;

/// Removes a folder and everything in it.
pub(crate) fn discard(path: &Path, means: &Means, program: &Path) -> io::Result<()> {
    if matches!(means.ids, Ids::Range { .. }) && path.symlink_metadata().is_ok() {
        discard_elsewhere(path, means, program).map_err(|error| io::Error::other(chain(&error)))?;
    }
    remove(path)
}

/// Has it done by a process that is root of a user namespace with the machine's ids.
fn discard_elsewhere(path: &Path, means: &Means, program: &Path) -> Result<(), BootError> {
    let deadline = Instant::now() + Duration::from_mins(2);
    let mut command = helper(program, DISCARD, path);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .doing("start the process that removes files")?;
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(BootError::Lost);
    };
    let said = child.stderr.take();
    let removed = expect(&from, UNSHARED, deadline)
        .and_then(|()| give_ids(&means.ids, child.id()))
        .and_then(|()| say(to, GO))
        .and_then(|()| expect(&from, GO, deadline));
    let _ = child.kill();
    let _ = child.wait();
    removed.map_err(|error| {
        let mut words = String::new();
        // What it said itself tells more than that it ended.
        let heard = said.map(|mut said| said.read_to_string(&mut words));
        let words = words.trim();
        if heard.is_some_and(|heard| heard.is_ok()) && !words.is_empty() {
            BootError::Said(words.into())
        } else {
            error
        }
    })
}

/// Removes what is in a folder, as root of a user namespace of its own.
pub(crate) fn discard_as_them(path: &Path) -> Result<(), BootError> {
    split_users().needing(Need::UserNamespace, "make a user namespace")?;
    say(io::stdout(), UNSHARED)?;
    expect(io::stdin(), GO, Instant::now() + Duration::from_mins(1))?;
    for entry in fs::read_dir(path).doing("look at what is left")? {
        let entry = entry.doing("look at what is left")?;
        let is_folder = entry.file_type().doing("look at what is left")?.is_dir();
        let removed =
            if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        removed.doing(format!("remove `{}`", entry.path().display()))?;
    }
    say(io::stdout(), GO)
}
