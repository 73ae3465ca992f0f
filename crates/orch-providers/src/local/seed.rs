//! What a machine made from this machine's programs begins with: an `/etc` of its own, without anything of this machine
//! that is secret.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::machine::{Means, program};

/// Folders of programs, shared read-only.
const PROGRAMS: [&str; 9] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "gnu", "opt"];
/// The store of Nix, shared where programs that nodes need lie in it. Elsewhere every node has one of its own.
const STORE: &str = "nix";
/// Folders of `/etc` and `/var` that belong to the programs, shared read-only too.
const BELONGINGS: [&str; 7] = [
    "etc/alternatives",
    "etc/ca-certificates",
    "etc/pki/ca-trust",
    "etc/pki/tls/certs",
    "etc/ssl/certs",
    "etc/static",
    "var/lib/dpkg",
];

/// What is taken over from this machine's `/etc`, as far as everybody may read it. None of it is about this very machine.
const TAKEN_OVER: [&str; 25] = [
    "bash.bashrc",
    "bashrc",
    "debian_version",
    "gai.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "login.defs",
    "magic",
    "nsswitch.conf",
    "os-release",
    "pam.conf",
    "pam.d",
    "profile",
    "protocols",
    "rpc",
    "security",
    "services",
    "shells",
    "skel",
    "terminfo",
    "localtime",
];

/// How the Nix of a node with a store of its own behaves: as root without a daemon, and it has nowhere to fetch from.
const NIX_SETTINGS: &str = "\
build-users-group =
experimental-features = nix-command flakes
sandbox = false
substituters =
";

/// Everything a machine begins with, in a folder; and what tells two such folders apart.
pub(crate) struct Seed {
    /// The hexadecimal digest of all that it is made from.
    pub(crate) key: String,
}

impl Seed {
    /// Finds out what a machine made now would begin with.
    pub(crate) fn of_this_machine() -> io::Result<Self> {
        let mut hash = Sha256::new();
        hash.update(b"seed 3\n");
        hash.update([u8::from(shares_store())]);
        for name in TAKEN_OVER.iter().map(|name| Path::new("/etc").join(name)) {
            hash_tree(&mut hash, &name)?;
        }
        for name in ["/etc/passwd", "/etc/group"] {
            hash_tree(&mut hash, Path::new(name))?;
        }
        Ok(Self { key: short(hash.finalize()) })
    }

    /// Lays it out in an empty folder.
    pub(crate) fn lay_out(root: &Path, means: &Means) -> io::Result<()> {
        for folder in [
            "dev",
            "etc/ssh/sshd_config.d",
            "etc/sudoers.d",
            "home",
            "mnt",
            "proc",
            "root",
            "run",
            "srv",
            "sys",
            "tmp",
            "var/lib",
            "var/log",
            "var/tmp",
            "var/cache",
            "var/spool",
        ] {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::set_permissions(root, Permissions::from_mode(0o755))?;
        fs::set_permissions(root.join("root"), Permissions::from_mode(0o700))?;
        for folder in ["tmp", "var/tmp"] {
            fs::set_permissions(root.join(folder), Permissions::from_mode(0o1777))?;
        }
        symlink("/run", root.join("var/run"))?;
        make_mount_points(root)?;
        if !shares_store() {
            lay_out_store(root)?;
        }
        for name in TAKEN_OVER {
            copy_tree(&Path::new("/etc").join(name), &root.join("etc").join(name))?;
        }
        write_accounts(root)?;
        write_settings(root, means)
    }
}

/// What of this machine is shared with machines made from its programs, by names below `/`.
pub(crate) fn shared() -> Vec<&'static str> {
    let store = shares_store().then_some(&STORE);
    PROGRAMS.iter().chain(store).chain(&BELONGINGS).copied().collect()
}

/// Whether a program that nodes need lies in the store of Nix, so that they cannot be without this machine's.
pub(crate) fn shares_store() -> bool {
    let needed = ["sh", "env", "sshd", "mount", "sudo", "nix-store"].into_iter().filter_map(program);
    let needed = needed.chain(std::env::current_exe()).chain([PathBuf::from("/bin/sh")]);
    let store = Path::new("/").join(STORE);
    needed.filter_map(|path| path.canonicalize().ok()).any(|path| path.starts_with(&store))
}

/// An empty store, which the node's own Nix fills.
fn lay_out_store(root: &Path) -> io::Result<()> {
    for folder in ["nix/store", "nix/var/nix/profiles", "nix/var/nix/gcroots", "etc/nix"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::set_permissions(root.join("nix/store"), Permissions::from_mode(0o1775))?;
    fs::write(root.join("etc/nix/nix.conf"), NIX_SETTINGS)
}

/// The folder around a path that is shared with machines made from this machine's programs, where there is one.
pub(crate) fn shared_around(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(ancestor.canonicalize().ok()?.join(rest))
    })?;
    let shared = shared().into_iter().map(|name| Path::new("/").join(name));
    // Links are not shared, but made there again.
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    let mut shared = shared.filter(is_folder);
    shared.find(|folder| there.starts_with(folder))
}

/// Enough of a digest to tell one thing from another, in hexadecimal.
pub(crate) fn short(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().take(8).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A folder for each thing that is shared, or the same link that this machine has there.
fn make_mount_points(root: &Path) -> io::Result<()> {
    for name in shared() {
        let there = Path::new("/").join(name);
        match fs::symlink_metadata(&there) {
            Ok(about) if about.is_symlink() => {
                fs::create_dir_all(root.join(name).parent().unwrap_or(root))?;
                symlink(fs::read_link(&there)?, root.join(name))?;
            }
            Ok(about) if about.is_dir() => fs::create_dir_all(root.join(name))?,
            _ => {}
        }
    }
    Ok(())
}

/// The accounts of this machine's programs, all without a password, and none of this machine's people.
fn write_accounts(root: &Path) -> io::Result<()> {
    let is_system = |line: &&str| {
        let id = line.split(':').nth(2).and_then(|id| id.parse::<u32>().ok());
        id.is_some_and(|id| id < 1000 || id == 65_534)
    };
    let passwd = fs::read_to_string("/etc/passwd")?;
    let users: Vec<&str> = passwd.lines().filter(is_system).collect();
    let shadow =
        users.iter().filter_map(|line| line.split(':').next()).map(|name| format!("{name}:*:::::::\n"));
    let group = fs::read_to_string("/etc/group")?;
    let groups = group.lines().filter(is_system).filter_map(|line| {
        let (group, _members) = line.rsplit_once(':')?;
        Some(format!("{group}:\n"))
    });
    fs::write(root.join("etc/passwd"), users.join("\n") + "\n")?;
    fs::write(root.join("etc/group"), groups.collect::<String>())?;
    let shadow_file = root.join("etc/shadow");
    fs::write(&shadow_file, shadow.collect::<String>())?;
    fs::set_permissions(shadow_file, Permissions::from_mode(0o600))
}

fn write_settings(root: &Path, means: &Means) -> io::Result<()> {
    let etc = root.join("etc");
    fs::write(etc.join("hosts"), "127.0.0.1 localhost\n::1 localhost\n")?;
    fs::write(
        etc.join("sudoers"),
        "Defaults env_reset\nroot ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n",
    )?;
    fs::set_permissions(etc.join("sudoers"), Permissions::from_mode(0o440))?;
    fs::set_permissions(etc.join("sudoers.d"), Permissions::from_mode(0o750))?;
    let sftp = means.ssh.as_ref().and_then(|ssh| ssh.sftp.as_ref());
    let sftp = sftp.map_or_else(String::new, |path| format!("Subsystem sftp {}\n", path.display()));
    // The first value of a setting counts, so what a spec asks for comes first.
    let settings = format!(
        "Include /etc/ssh/sshd_config.d/*.conf\n\
         HostKey /etc/ssh/ssh_host_ed25519_key\n\
         AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/orch_keys/%u\n\
         UsePAM no\nUseDNS no\nPidFile /run/sshd.pid\nMaxStartups 100\nLoginGraceTime 30\nPrintMotd yes\n{sftp}"
    );
    fs::write(etc.join("ssh/sshd_config"), settings)
}

/// Takes into account what a file, link or folder is, by when and how large.
pub(crate) fn hash_tree(hash: &mut Sha256, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let Ok(about) = fs::symlink_metadata(path) else { return Ok(()) };
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update(about.len().to_le_bytes());
    hash.update(about.ctime().to_le_bytes());
    hash.update(about.ctime_nsec().to_le_bytes());
    if about.is_dir() {
        for entry in sorted(path)? {
            hash_tree(hash, &entry)?;
        }
    }
    Ok(())
}

/// Copies what everybody may read; links stay links, and what is neither file nor folder nor link is left out.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(about) = fs::symlink_metadata(from) else { return Ok(()) };
    if !about.is_symlink() && about.permissions().mode() & 0o004 == 0 {
        return Ok(());
    }
    if about.is_symlink() {
        symlink(fs::read_link(from)?, to)
    } else if about.is_dir() {
        fs::create_dir_all(to)?;
        sorted(from)?.iter().try_for_each(|entry| match entry.file_name() {
            Some(name) => copy_tree(entry, &to.join(name)),
            None => Ok(()),
        })?;
        fs::set_permissions(to, about.permissions())
    } else if about.is_file() {
        fs::write(to, fs::read(from)?)?;
        fs::set_permissions(to, about.permissions())
    } else {
        Ok(())
    }
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_folder_of_programs_is_known_to_be_shared() {
        assert_eq!(shared_around(Path::new("/usr/local/orch/keys")), Some("/usr".into()));
        assert_eq!(shared_around(Path::new("/var/lib/orch/keys")), None);
        let folder = tempfile::tempdir().expect("a folder can be made");
        symlink("/usr/lib", folder.path().join("state")).expect("it can be linked");
        assert_eq!(shared_around(&folder.path().join("state/orch")), Some("/usr".into()));
        assert_eq!(shared_around(&folder.path().join("other")), None);
    }

    #[test]
    fn what_not_everybody_may_read_stays_on_this_machine() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("closed")).expect("it can be made");
        for (name, mode) in [("open", 0o644), ("secret", 0o600), ("closed/open", 0o644)] {
            fs::write(from.join(name), name).expect("it can be written");
            fs::set_permissions(from.join(name), Permissions::from_mode(mode)).expect("it is ours");
        }
        fs::set_permissions(from.join("closed"), Permissions::from_mode(0o700)).expect("it is ours");
        fs::set_permissions(&from, Permissions::from_mode(0o755)).expect("it is ours");
        copy_tree(&from, &to).expect("it can be copied");
        assert!(to.join("open").exists());
        assert!(!to.join("secret").exists() && !to.join("closed").exists());
    }
}
