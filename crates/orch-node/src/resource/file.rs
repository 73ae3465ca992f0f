//! A file of the configuration: its content, its mode, its owner.
//!
//! What is at its place is replaced where it is a file or a link, and never written through. See [`crate::node`] for
//! which links above it are followed.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use orch_model::config::File;

use super::{Claims, Look, Resource, ssh_trial};
use crate::accounts;
use crate::error::ApplyError;
use crate::node::{Node, Owner, Wanted, split};

/// Where nothing is a file: the kernel shows itself there.
const NOT_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What orch keeps there is its own.
const OWN_FOLDERS: [&str; 2] = ["/var/lib/orch", "/run/orch"];

/// The node's own host key: it makes that itself.
const OWN_KEY: [&str; 2] = ["/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_ed25519_key.pub"];

/// What orch writes from other parts of the configuration, and which part that is.
const OWN_FILES: [(&str, &str); 9] = [
    ("/etc/hostname", "identity"),
    ("/etc/timezone", "config.timezone"),
    ("/etc/localtime", "config.timezone"),
    ("/etc/passwd", "access.users"),
    ("/etc/group", "access.users"),
    ("/etc/shadow", "access.users"),
    ("/etc/gshadow", "access.users"),
    ("/etc/ssh/sshd_config.d/50-orch.conf", "access.posture"),
    ("/etc/fail2ban/jail.d/orch.local", "access.posture"),
];

/// Where a file of orch's for each account says whether it may use `sudo`.
const SUDOERS: &str = "/etc/sudoers.d";

pub(super) struct PlainFile {
    file: File,
    mode: u32,
    claims: Rc<Claims>,
}

impl PlainFile {
    pub(super) fn new(file: File, claims: Rc<Claims>) -> Self {
        let mode = u32::from_str_radix(file.mode.as_str(), 8).expect("a file mode is octal digits");
        Self { file, mode, claims }
    }

    fn path(&self) -> &Path {
        Path::new(self.file.path.as_str())
    }

    /// Its place once links are followed must be as fit as the one that was written.
    fn check_path(&self, node: &Node) -> Result<(), ApplyError> {
        check_place(self.path())?;
        let place = node.place_of(self.path())?;
        check_place(&place)?;
        if self.claims.hold_twice(node, &place) {
            return Err(ApplyError::refused(self.path(), "the configuration has two files there"));
        }
        check_keys(node, &self.claims, &place)
    }

    fn owner(&self, node: &Node) -> Result<Owner, ApplyError> {
        accounts::owner(node, &self.file.owner)
    }

    fn wanted(&self, owner: Owner) -> Wanted<'_> {
        Wanted { content: self.file.content.as_bytes(), mode: self.mode, owner }
    }
}

/// Says what is against writing to a place, whatever is written there.
pub(super) fn check_place(path: &Path) -> Result<(), ApplyError> {
    if NOT_FILES.iter().any(|folder| path.starts_with(folder)) {
        return Err(ApplyError::refused(path, "what is there belongs to the kernel"));
    }
    if OWN_FOLDERS.iter().any(|folder| path.starts_with(folder))
        || OWN_KEY.iter().any(|key| path == Path::new(key))
    {
        return Err(ApplyError::refused(path, "what is there is orch's own"));
    }
    if path.strip_prefix(SUDOERS).is_ok_and(|name| name.as_os_str().as_bytes().starts_with(b"orch-")) {
        return Err(of_another_part(path, "access.users"));
    }
    let own = OWN_FILES.iter().find(|(own, _)| path == Path::new(own));
    own.map_or(Ok(()), |(_, part)| Err(of_another_part(path, part)))
}

/// What opens the accounts of a configuration is written from its users alone.
pub(super) fn check_keys(node: &Node, claims: &Claims, place: &Path) -> Result<(), ApplyError> {
    if claims.hold_keys(node, place)? { Err(of_another_part(place, "access.users")) } else { Ok(()) }
}

fn of_another_part(path: &Path, part: &str) -> ApplyError {
    ApplyError::refused(path, format!("orch writes it from `{part}` of the configuration"))
}

impl Resource for PlainFile {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn name(&self) -> String {
        self.file.path.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        self.check_path(node)?;
        if !accounts::is_possible(node, &self.file.owner) {
            return Ok(Look::skip(accounts::NO_ACCOUNTS));
        }
        let owner = self.owner(node)?;
        let (folder, name) = split(self.path()).expect("a path of a file has a name");
        let Some(folder) = node.folder(folder)? else {
            return Ok(Look::Differs("it is not there".into()));
        };
        Ok(Look::of(folder.difference(name, &self.wanted(owner))?))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let owner = self.owner(node)?;
        let (folder, name) = split(self.path()).expect("a path of a file has a name");
        let folder = node.make_folder_where(folder, 0o755, &check_place)?;
        let place = folder.path().join(name);
        check_place(&place)?;
        folder.write_checked(name, &self.wanted(owner), |draft| {
            if ssh_trial::reads(&place) {
                ssh_trial::admit(node, &place, &folder.path().join(draft))?;
            }
            Ok(())
        })
    }
}
