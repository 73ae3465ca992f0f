//! How orch comes into a machine that it has just made: an account, a key that opens it, and leave to become root for one
//! program. Runs inside the machine's root.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

use orch_model::{PublicKey, UserName};

/// Makes the account if it is missing, pins the machine's host key and lets the driver's key in.
pub(super) fn let_in(user: &UserName, access: &PublicKey, host_key: &[u8], is_ours: bool) -> io::Result<()> {
    make_account(user)?;
    fs::create_dir_all("/etc/ssh/orch_keys")?;
    replace(Path::new("/etc/ssh/ssh_host_ed25519_key"), host_key, 0o600)?;
    replace(&Path::new("/etc/ssh/orch_keys").join(user.as_str()), format!("{access}\n").as_bytes(), 0o644)?;
    if is_ours {
        return Ok(());
    }
    // An image brings settings of its own, and the first value of each counts.
    let settings = "HostKey /etc/ssh/ssh_host_ed25519_key\nAuthorizedKeysFile .ssh/authorized_keys /etc/ssh/orch_keys/%u\n";
    fs::create_dir_all("/etc/ssh/sshd_config.d")?;
    replace(Path::new("/etc/ssh/sshd_config.d/10-orch-access.conf"), settings.as_bytes(), 0o644)
}

/// Lets the account become root for one program, without a password.
pub(super) fn allow(user: &UserName, program: &str) -> io::Result<()> {
    if user.as_str() == "root" || !Path::new("/etc/sudoers.d").is_dir() {
        return Ok(());
    }
    // By way of `env`, as the driver runs it.
    let rule = format!("{user} ALL=(root) NOPASSWD: {program}, /usr/bin/env -- {program} *\n");
    replace(Path::new("/etc/sudoers.d/00-orch-access"), rule.as_bytes(), 0o440)
}

/// Makes the machine's own name one that it can look up; there is no name server for it.
pub(super) fn know_yourself(name: &str) -> io::Result<()> {
    let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
    if hosts.lines().any(|line| line.starts_with("127.0.1.1")) {
        return Ok(());
    }
    append(Path::new("/etc/hosts"), &hosts, &format!("127.0.1.1 {name}\n"))
}

fn make_account(user: &UserName) -> io::Result<()> {
    let passwd = fs::read_to_string("/etc/passwd")?;
    let names = |line: &str| line.split(':').next() == Some(user.as_str());
    if passwd.lines().any(names) {
        return Ok(());
    }
    let group = fs::read_to_string("/etc/group")?;
    let is_taken = |id: u32| {
        let has = |line: &str| line.split(':').nth(2).and_then(|field| field.parse().ok()) == Some(id);
        passwd.lines().any(has) || group.lines().any(has)
    };
    let id = (1000..60_000)
        .find(|id| !is_taken(*id))
        .ok_or_else(|| io::Error::other("there is no free user id"))?;
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    append(Path::new("/etc/group"), &group, &format!("{user}:x:{id}:\n"))?;
    let shadow = fs::read_to_string("/etc/shadow").unwrap_or_default();
    append(Path::new("/etc/shadow"), &shadow, &format!("{user}:*:::::::\n"))?;
    append(Path::new("/etc/passwd"), &passwd, &format!("{user}:x:{id}:{id}::/home/{user}:{shell}\n"))?;
    let home = Path::new("/home").join(user.as_str());
    fs::create_dir_all(&home)?;
    fs::set_permissions(&home, Permissions::from_mode(0o700))?;
    chown(&home, Some(id), Some(id))
}

/// Adds a line to a file, by way of a whole new one.
fn append(path: &Path, text: &str, line: &str) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o600, |about| about.permissions().mode() & 0o7777);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    replace(path, format!("{text}{end}{line}").as_bytes(), mode)
}

/// Writes a whole new file in place of the old one; one that is as wanted is left.
fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let draft = path.with_extension("orch-new");
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    fs::rename(&draft, path)
}
