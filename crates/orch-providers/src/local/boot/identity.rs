//! Who a machine is to itself: its host name, and the id by which its programs know it. Runs inside the machine's root.

use std::fs;
use std::io;
use std::path::Path;

use uuid::Uuid;

use super::super::record::Record;
use super::accounts::replace;

const HOST_NAME: &str = "/etc/hostname";
const HOSTS: &str = "/etc/hosts";

/// Makes a machine itself. What its image says at first is about whoever made the image; what is found later was
/// written by its configuration, and stays.
pub(super) fn become_oneself(record: &Record) -> io::Result<()> {
    let is_new = !record.made && !record.shares_programs;
    if is_new {
        identify(record.marks.uuid)?;
    }
    let found = fs::read_to_string(HOST_NAME).ok().map(|name| name.trim().to_owned());
    let found = found.filter(|name| !name.is_empty() && !is_new);
    let name = found.unwrap_or_else(|| record.marks.node.to_string());
    rustix::system::sethostname(name.as_bytes())?;
    if is_new {
        replace(Path::new(HOST_NAME), format!("{name}\n").as_bytes(), 0o644)?;
    }
    know(&name)
}

/// Gives it an id of its own: machines from one image would all have that of the image.
fn identify(uuid: Uuid) -> io::Result<()> {
    let id = format!("{}\n", uuid.simple());
    for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"].map(Path::new) {
        if fs::symlink_metadata(path).is_ok_and(|about| about.is_file()) || path.starts_with("/etc") {
            replace(path, id.as_bytes(), 0o444)?;
        }
    }
    Ok(())
}

/// Makes its own name one that it can look up; there is no name server for it.
fn know(name: &str) -> io::Result<()> {
    let hosts = fs::read_to_string(HOSTS).unwrap_or_else(|_| "127.0.0.1 localhost\n".into());
    if hosts.lines().any(|line| line.starts_with("127.0.1.1")) {
        return Ok(());
    }
    let end = if hosts.ends_with('\n') { "" } else { "\n" };
    replace(Path::new(HOSTS), format!("{hosts}{end}127.0.1.1 {name}\n").as_bytes(), 0o644)
}
