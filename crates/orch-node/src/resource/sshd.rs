//! How the SSH server answers: a file of orch's that its own configuration includes first.
//!
//! The file counts only once `sshd` itself has found it good, and the server is told by a signal, which ends no
//! connection.

use std::ffi::OsStr;
use std::path::Path;
use std::rc::Rc;

use orch_model::config::Ssh;

use super::ssh_trial::{FOLDER, MAIN, admit, includes_folder, settings, with_include};
use super::{Claims, Look, Resource};
use crate::due_reload::{DueReload, UNTOLD};
use crate::error::ApplyError;
use crate::node::Node;
use crate::settings_file::SettingsFile;
use crate::ssh_server;

const NAME: &str = "50-orch.conf";
const FILE: &str = "/etc/ssh/sshd_config.d/50-orch.conf";

pub(super) struct Sshd {
    port: u16,
    text: String,
    /// Of these the server takes the first that it reads. Ports add up, so a port that others name is not ours to judge.
    first_counts: [(&'static str, &'static str); 2],
    claims: Rc<Claims>,
}

impl Sshd {
    pub(super) fn new(ssh: &Ssh, claims: Rc<Claims>) -> Self {
        let text = format!(
            "# Written by orch; changes are undone by its next run.\nPort {}\nPermitRootLogin {}\nPasswordAuthentication {}\n",
            ssh.port, ssh.permit_root_login, ssh.password_authentication
        );
        let first_counts = [
            ("permitrootlogin", ssh.permit_root_login.as_str()),
            ("passwordauthentication", ssh.password_authentication.as_str()),
        ];
        Self { port: ssh.port, text, first_counts, claims }
    }

    fn file(&self) -> SettingsFile<'static> {
        SettingsFile::new(FILE, self.text.clone())
    }

    /// A server's file that the configuration brings is not ours to change.
    fn include(&self, node: &Node) -> Result<(), ApplyError> {
        let main = node.read(Path::new(MAIN))?.unwrap_or_default();
        let Some(main) = with_include(&main).filter(|_| !self.claims.hold(node, MAIN)) else { return Ok(()) };
        let mode = node.mode(Path::new(MAIN))?.unwrap_or(0o644);
        SettingsFile::new(MAIN, main).mode(mode).write(node)
    }

    /// Who says otherwise before we do, so that ours does not count.
    fn contradicted(&self, node: &Node, main: &[u8]) -> Result<Option<String>, ApplyError> {
        if settings(main).take_while(|(key, _)| key != "include").any(|said| self.contradicts(&said)) {
            return Ok(Some(MAIN.into()));
        }
        let Some(folder) = node.folder(Path::new(FOLDER))? else { return Ok(None) };
        for name in folder.names()?.iter().take_while(|name| *name != OsStr::new(NAME)) {
            let is_read = Path::new(name).extension() == Some(OsStr::new("conf"));
            let text = if is_read { node.read_in(&folder, name)?.unwrap_or_default() } else { Vec::new() };
            if settings(&text).any(|said| self.contradicts(&said)) {
                return Ok(Some(format!("{FOLDER}/{}", name.display())));
            }
        }
        Ok(None)
    }

    fn contradicts(&self, (key, value): &(String, String)) -> bool {
        self.first_counts.iter().any(|(ours, wanted)| key == ours && !value.eq_ignore_ascii_case(wanted))
    }
}

impl Resource for Sshd {
    fn kind(&self) -> &'static str {
        "sshd"
    }

    fn name(&self) -> String {
        format!("port {}", self.port)
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        if !ssh_server::is_here(node) {
            return Ok(Look::skip("no SSH server here"));
        }
        if let Some(how) = self.file().difference(node)? {
            return Ok(Look::Differs(format!("{FILE}: {how}")));
        }
        let main = node.read(Path::new(MAIN))?.unwrap_or_default();
        if !includes_folder(&main) {
            return Ok(Look::Differs(format!("{MAIN} does not include {FOLDER}")));
        }
        if let Some(who) = self.contradicted(node, &main)? {
            return Ok(Look::Differs(format!("{who} says otherwise before orch does")));
        }
        Ok(Look::of(DueReload::SSHD.is_set(node).then(|| UNTOLD.into())))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        self.file().write_checked(node, |draft| admit(node, Path::new(FILE), draft))?;
        self.include(node)?;
        ssh_server::reload(node)?;
        DueReload::SSHD.clear(node)
    }
}
