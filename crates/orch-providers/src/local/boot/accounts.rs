//! How orch comes into a machine: an account, a key that opens it, and leave to become root for one program. Runs inside
//! the machine's root.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, fchown};
use std::path::Path;

use orch_model::{PublicKey, UserName};

use super::super::image::{SSH_SERVERS, SSH_SETTINGS, SUDOS};

/// What opens a machine, and by what the machine is known again.
pub(super) struct Keys<'a> {
    /// The public half of the driver's key.
    pub(super) access: &'a PublicKey,
    /// The host key that it is made with, where it is given one.
    pub(super) host: Option<(&'a [u8], &'a PublicKey)>,
}

/// Makes the account if it is missing, gives the machine the host key that it is made with and lets the driver's key in.
pub(super) fn let_in(user: &UserName, keys: &Keys<'_>) -> io::Result<()> {
    make_account(user)?;
    fs::create_dir_all("/etc/ssh/orch_keys")?;
    if let Some((private, public)) = keys.host {
        replace(Path::new("/etc/ssh/ssh_host_ed25519_key"), private, 0o600)?;
        let public = format!("{public}\n");
        replace(Path::new("/etc/ssh/ssh_host_ed25519_key.pub"), public.as_bytes(), 0o644)?;
    }
    let access = format!("{}\n", keys.access);
    replace(&Path::new("/etc/ssh/orch_keys").join(user.as_str()), access.as_bytes(), 0o644)
}

/// Has the SSH server of an image use these keys. It brings settings of its own, and the first value of each counts.
pub(super) fn open_server(user: &UserName) -> io::Result<()> {
    let main = Path::new(SSH_SETTINGS);
    let has_one_of = |places: &[&str]| places.iter().any(|place| Path::new(place).exists());
    if !has_one_of(&SSH_SERVERS) || !main.exists() {
        return Err(io::Error::other("its image has no SSH server"));
    }
    if user.as_str() != "root" && !has_one_of(&SUDOS) {
        return Err(io::Error::other("its image has no `sudo`"));
    }
    let settings = "HostKey /etc/ssh/ssh_host_ed25519_key\n\
                    AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/orch_keys/%u\n";
    fs::create_dir_all("/etc/ssh/sshd_config.d")?;
    replace(Path::new("/etc/ssh/sshd_config.d/00-orch-access.conf"), settings.as_bytes(), 0o644)?;
    let found = fs::read_to_string(main)?;
    let includes = |line: &str| line.trim_start().starts_with("Include") && line.contains("/sshd_config.d/");
    if found.lines().any(includes) {
        return Ok(());
    }
    replace(main, format!("Include /etc/ssh/sshd_config.d/*.conf\n{found}").as_bytes(), 0o644)
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
    let shadow = match fs::read_to_string("/etc/shadow") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        shadow => shadow?,
    };
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

/// Writes a whole new file in place of the old one, and for the same owner; one that is as wanted is left.
pub(super) fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let draft = path.with_extension("orch-new");
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    file.write_all(content)?;
    if let Ok(old) = fs::metadata(path) {
        fchown(&file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    fs::rename(&draft, path)
}
