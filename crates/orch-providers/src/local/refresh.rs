//! The program that configures a machine is this one, as it was when the machine was started. When `orch` has been
//! replaced since, the machine is given the new one without being stopped.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};
use rustix::thread::ThreadNameSpaceType;

use super::boot::{PROGRAM, join, make_read_only};
use super::child::{helper, run};
use super::inside;
use super::machine::is_root;
use super::process::Process;
use super::record::Folder;

/// The word for giving a machine the program as it is now.
pub(crate) const REFRESH: &str = "refresh";

/// Gives a machine the program as it is now, where it has an older one. Only root can: for others the older one stays
/// until the machine is started again.
pub(crate) fn refresh(folder: &Folder, program: &Path) -> io::Result<()> {
    let shares = folder.record().is_ok_and(|record| record.shares_programs);
    let Some(init) = folder.running().filter(|_| shares && is_root()) else {
        return Ok(());
    };
    if is_same(&init, program)? {
        return Ok(());
    }
    run(&mut helper(program, REFRESH, folder.path()), &[0])
}

fn is_same(init: &Process, program: &Path) -> io::Result<bool> {
    let theirs = inside::about(init, PROGRAM)?;
    let ours = fs::metadata(program)?;
    Ok(theirs.ino() == ours.ino() && theirs.dev() == ours.dev())
}

/// Takes this program's file along into the machine's mounts, and puts it in the place of the older one.
pub(crate) fn refresh_from_inside(folder: &Folder) -> io::Result<()> {
    let init = folder.running().ok_or_else(|| io::Error::other("it does not run"))?;
    let own = std::env::current_exe()?;
    let file = open_tree(CWD, &own, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    join(&init, ThreadNameSpaceType::MOUNT).map_err(io::Error::other)?;
    // The older one may be gone from its disk, and nothing can be put over a file that is gone.
    match unmount(PROGRAM, UnmountFlags::DETACH) {
        // Somebody was cut off here before.
        Err(Errno::INVAL) => {}
        unmounted => unmounted?,
    }
    move_mount(file.as_fd(), "", CWD, PROGRAM, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    make_read_only(Path::new(PROGRAM))
}
