//! The name that the machine gives itself at its first boot.

use std::path::Path;

use crate::error::ApplyError;
use crate::lines::Lines;
use crate::node::Node;
use crate::settings_file::SettingsFile;

const HOSTS: &str = "/etc/hosts";

/// Sets the host name: in the kernel, and where the next boot finds it.
pub(super) fn set(node: &Node, name: &str) -> Result<(), ApplyError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return Err(ApplyError::Impossible("this is no host name".into()));
    }
    SettingsFile::new("/etc/hostname", format!("{name}\n")).write(node)?;
    if node.is_real() {
        rustix::system::sethostname(name.as_bytes())
            .map_err(ApplyError::file("set the kernel's", Path::new("hostname")))?;
    }
    let old = node.read(Path::new(HOSTS))?.unwrap_or_else(|| b"127.0.0.1 localhost\n".to_vec());
    let mut lines = Lines::of(&old);
    lines.set(format!("127.0.1.1 {name}").as_bytes(), |line| line.starts_with(b"127.0.1.1"));
    SettingsFile::new(HOSTS, lines.into_bytes()).write(node)
}
