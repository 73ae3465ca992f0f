//! A file of the configuration: its content, its mode, its owner.
//!
//! What is at its place is replaced where it is a file or a link, and never written through. See [`crate::node`] for
//! which links above it are followed.

use std::path::Path;
use std::rc::Rc;

use orch_model::config::File;

use super::{Claims, Look, Resource};
use crate::accounts;
use crate::error::ApplyError;
use crate::node::{Folder, Node, Owner, Wanted, split};

/// Where nothing is a file: the kernel shows itself there.
const NOT_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What orch keeps there is its own.
const OWN_FOLDERS: [&str; 2] = ["/var/lib/orch", "/run/orch"];

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

    fn check_path(&self) -> Result<(), ApplyError> {
        if self.claims.hold_twice(&self.file.path) {
            return Err(ApplyError::refused(self.path(), "the configuration has two files there"));
        }
        check_place(self.path())
    }

    /// Its place once links are followed must be as fit as the one that was written.
    fn check_folder(&self, folder: &Folder) -> Result<(), ApplyError> {
        let (_, name) = split(self.path()).expect("a path of a file has a name");
        check_place(&folder.path().join(name))
    }

    fn owner(&self, node: &Node) -> Result<Owner, ApplyError> {
        accounts::owner(node, &self.file.owner)
    }

    fn wanted(&self, owner: Owner) -> Wanted<'_> {
        Wanted { content: self.file.content.as_bytes(), mode: self.mode, owner }
    }
}

fn check_place(path: &Path) -> Result<(), ApplyError> {
    if NOT_FILES.iter().any(|folder| path.starts_with(folder)) {
        return Err(ApplyError::refused(path, "what is there belongs to the kernel"));
    }
    if OWN_FOLDERS.iter().any(|folder| path.starts_with(folder)) {
        return Err(ApplyError::refused(path, "what is there is orch's own"));
    }
    let own = OWN_FILES.iter().find(|(own, _)| path == Path::new(own));
    own.map_or(Ok(()), |(_, part)| {
        Err(ApplyError::refused(path, format!("orch writes it from `{part}` of the configuration")))
    })
}

impl Resource for PlainFile {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn name(&self) -> String {
        self.file.path.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        self.check_path()?;
        if !accounts::is_possible(node, &self.file.owner) {
            return Ok(Look::skip(accounts::NO_ACCOUNTS));
        }
        let owner = self.owner(node)?;
        let (folder, name) = split(self.path()).expect("a path of a file has a name");
        let Some(folder) = node.folder(folder)? else {
            return Ok(Look::Differs("it is not there".into()));
        };
        self.check_folder(&folder)?;
        Ok(Look::of(folder.difference(name, &self.wanted(owner))?))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let owner = self.owner(node)?;
        let (folder, name) = split(self.path()).expect("a path of a file has a name");
        let folder = node.make_folder_where(folder, 0o755, &check_place)?;
        self.check_folder(&folder)?;
        folder.write(name, &self.wanted(owner))
    }
}
