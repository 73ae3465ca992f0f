//! The root of a machine, put together in its own mount namespace: its disk, this machine's programs, and what the kernel
//! shows.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};

use super::super::machine::{Standing, program};
use super::super::seed::shared;
use super::{BootError, Doing, Need, PROGRAM, RUN, UPLINK};

/// What a root is made of.
pub(super) struct Root {
    /// Where it is put together.
    pub(super) path: PathBuf,
    /// The disk that is mounted there; without one, what is in the folder is the root.
    pub(super) disk: Option<PathBuf>,
    pub(super) shares_programs: bool,
    /// The host's network, to be held; a machine inside another needs not.
    pub(super) uplink: Option<PathBuf>,
    /// The program that configures the machine.
    pub(super) program: PathBuf,
}

const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Puts the root together and makes it this process's.
pub(super) fn assemble(root: &Root, standing: Standing) -> Result<(), BootError> {
    let to = &root.path;
    keep_to_itself()?;
    match &root.disk {
        Some(disk) => mount_disk(disk, to)?,
        None => mount_bind(to, to).doing("mount its root")?,
    }
    if root.shares_programs {
        share(to)?;
    }
    for folder in ["dev", "proc", "run", "sys", "tmp"] {
        place(to, folder).doing(format!("make `/{folder}`"))?;
    }
    mount_kernel(to, standing)?;
    mount_devices(&to.join("dev"), standing)?;
    mount_run(root)?;
    become_root(to)
}

/// Mounts a disk by a loop device that vanishes with its last mount.
fn mount_disk(disk: &Path, to: &Path) -> Result<(), BootError> {
    let mount = program("mount").ok_or_else(|| io::Error::other("there is no `mount` here"));
    let mut command = Command::new(mount.needing(Need::Disk, "mount its disk")?);
    command.args(["-t", "ext4", "-o", "loop,noatime,nodev"]).arg(disk).arg(to);
    super::super::child::run(&mut command, &[0]).needing(Need::Disk, "mount its disk")
}

/// Shares this machine's programs, which cannot be changed from there.
fn share(to: &Path) -> Result<(), BootError> {
    for name in shared() {
        let from = Path::new("/").join(name);
        let is_folder = fs::symlink_metadata(&from).is_ok_and(|about| about.is_dir());
        if is_folder {
            let to = place(to, name).doing(format!("make `/{name}`"))?;
            mount_bind_recursive(&from, &to).doing(format!("share `/{name}`"))?;
            for mount in mounts_below(&to).doing(format!("protect `/{name}`"))? {
                make_read_only(&mount).doing(format!("protect `/{name}`"))?;
            }
        }
    }
    Ok(())
}

/// A folder of the root, made where it is missing. The machine may have put a link there when it last ran, which would lead
/// out of its root as long as that is not ours.
fn place(root: &Path, name: &str) -> io::Result<PathBuf> {
    let mut path = root.to_owned();
    for part in name.split('/') {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => return Err(io::Error::other("something else lies there")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&path)?,
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// The mounts at a path and below it, as this process has them.
fn mounts_below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(unescaped);
    Ok(points.filter(|point| point.starts_with(path)).collect())
}

/// A path of the kernel's table of mounts, where blanks and the like are written as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let code =
            after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes).into()
}

/// Makes a mount read-only. What else restricts it must be said again: without the right to, it may not be lifted.
pub(crate) fn make_read_only(path: &Path) -> io::Result<()> {
    let now = statvfs(path)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (is, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if now.contains(is) {
            flags |= flag;
        }
    }
    Ok(mount_remount(path, flags, c"")?)
}

fn mount_kernel(to: &Path, standing: Standing) -> Result<(), BootError> {
    let (proc, sys) = (to.join("proc"), to.join("sys"));
    mount_views(&proc, &sys)?;
    let groups = sys.join("fs/cgroup");
    // An init of its own may want it; where the kernel does not give it, the machine has none.
    let _ = mount("cgroup2", &groups, "cgroup2", PLAIN | MountFlags::NOEXEC, None);
    if standing == Standing::Root { protect_kernel(&proc) } else { Ok(()) }
}

/// What the kernel shows of the namespaces that this process is in.
fn mount_views(proc: &Path, sys: &Path) -> Result<(), BootError> {
    let flags = PLAIN | MountFlags::NOEXEC;
    mount("proc", proc, "proc", flags, None).needing(Need::Kernel, "mount `/proc`")?;
    mount("sysfs", sys, "sysfs", flags | MountFlags::RDONLY, None).needing(Need::Kernel, "mount `/sys`")
}

/// Tries whether this process, the first one of its namespaces, may be shown what a machine's first process is.
pub(super) fn try_views() -> Result<(), BootError> {
    keep_to_itself()?;
    mount_views(Path::new("/proc"), Path::new("/sys"))
}

/// Keeps what is mounted from now on out of sight of everybody else.
fn keep_to_itself() -> Result<(), BootError> {
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).doing("keep its mounts to itself")
}

/// Keeps what is about the whole computer from being changed from inside of the machine; its own network is its own.
fn protect_kernel(proc: &Path) -> Result<(), BootError> {
    let settings = proc.join("sys");
    mount_bind(&settings, &settings).doing("protect `/proc/sys`")?;
    mount_bind(settings.join("net"), settings.join("net")).doing("protect `/proc/sys`")?;
    make_read_only(&settings).doing("protect `/proc/sys`")?;
    for name in ["sysrq-trigger", "kcore"] {
        let path = proc.join(name);
        if path.exists() {
            mount_bind("/dev/null", &path).doing(format!("protect `/proc/{name}`"))?;
        }
    }
    Ok(())
}

fn mount_devices(dev: &Path, standing: Standing) -> Result<(), BootError> {
    let devices = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("tmpfs", dev, "tmpfs", devices, Some(c"mode=755,size=1m")).doing("mount `/dev`")?;
    for name in ["null", "zero", "full", "random", "urandom", "tty"] {
        File::create(dev.join(name)).doing(format!("make `/dev/{name}`"))?;
        mount_bind(Path::new("/dev").join(name), dev.join(name)).doing(format!("share `/dev/{name}`"))?;
    }
    for (link, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(to, dev.join(link)).doing(format!("make `/dev/{link}`"))?;
    }
    for folder in ["pts", "shm"] {
        fs::create_dir(dev.join(folder)).doing(format!("make `/dev/{folder}`"))?;
    }
    // The group of terminals is 5 by custom; who has one id alone has no group 5.
    let options = if standing == Standing::Alone {
        c"newinstance,ptmxmode=0666,mode=0620"
    } else {
        c"newinstance,ptmxmode=0666,mode=0620,gid=5"
    };
    mount("devpts", dev.join("pts"), "devpts", MountFlags::NOSUID | MountFlags::NOEXEC, Some(options))
        .doing("mount `/dev/pts`")?;
    mount("tmpfs", dev.join("shm"), "tmpfs", PLAIN, Some(c"mode=1777")).doing("mount `/dev/shm`")
}

/// What is gone with a stop: `/run`, `/tmp`, and in them what orch needs.
fn mount_run(root: &Root) -> Result<(), BootError> {
    let to = &root.path;
    mount("tmpfs", to.join("run"), "tmpfs", PLAIN, Some(c"mode=755")).doing("mount `/run`")?;
    mount("tmpfs", to.join("tmp"), "tmpfs", PLAIN, Some(c"mode=1777")).doing("mount `/tmp`")?;
    fs::create_dir(to.join(RUN)).doing("make `/run/orch`")?;
    fs::set_permissions(to.join(RUN), Permissions::from_mode(0o755)).doing("make `/run/orch`")?;
    let program = to.join(PROGRAM.trim_start_matches('/'));
    File::create(&program).doing("make the place of its program")?;
    mount_bind(&root.program, &program).doing("share its program")?;
    make_read_only(&program).doing("protect its program")?;
    if let Some(uplink) = &root.uplink {
        File::create(to.join(UPLINK)).doing("make the place of the host's network")?;
        mount_bind(uplink, to.join(UPLINK)).doing("hold the host's network")?;
    }
    Ok(())
}

/// Makes the folder the root of everything, and leaves the old root behind for good.
fn become_root(to: &Path) -> Result<(), BootError> {
    std::env::set_current_dir(to).doing("enter its root")?;
    rustix::process::pivot_root(".", ".").doing("make it the root")?;
    unmount(".", UnmountFlags::DETACH).doing("leave the old root")?;
    std::env::set_current_dir("/").doing("enter its root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_read_as_they_were_meant() {
        assert_eq!(unescaped(r"/a\040b\134c"), Path::new(r"/a b\c"));
        assert_eq!(unescaped("/plain"), Path::new("/plain"));
    }

    #[test]
    fn a_place_is_made_and_never_found_behind_a_link() {
        let root = tempfile::tempdir().expect("a folder can be made");
        assert!(place(root.path(), "var/lib/dpkg").is_ok_and(|path| path.is_dir()));
        symlink("/etc", root.path().join("etc")).expect("it can be linked");
        assert!(place(root.path(), "etc/ssl").is_err());
        assert!(!Path::new("/etc/ssl-of-a-test").exists());
    }
}
