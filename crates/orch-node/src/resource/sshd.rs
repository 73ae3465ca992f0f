//! How the SSH server answers: a file of orch's that its own configuration includes first.
//!
//! The file counts only once `sshd` itself has found it good, and the server is told by a signal, which ends no
//! connection.

use std::ffi::OsStr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use orch_model::config::Ssh;

use super::{Claims, Look, Resource};
use crate::due_reload::{DueReload, UNTOLD};
use crate::error::ApplyError;
use crate::lines::Lines;
use crate::node::Node;
use crate::settings_file::SettingsFile;
use crate::ssh_server;

const MAIN: &str = "/etc/ssh/sshd_config";
const FOLDER: &str = "/etc/ssh/sshd_config.d";
const NAME: &str = "50-orch.conf";
const FILE: &str = "/etc/ssh/sshd_config.d/50-orch.conf";
/// What `sshd` is shown to judge: the draft in front of all that is there.
const TRIAL: &str = "/etc/ssh/.orch-trial";
const INCLUDE: &str = "Include /etc/ssh/sshd_config.d/*.conf";
const LIMIT: Duration = Duration::from_secs(20);

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

    fn check(&self, node: &Node) -> Result<(), ApplyError> {
        let Some(sshd) = node.tool("sshd") else { return Ok(()) };
        let main = node.read(Path::new(MAIN))?.unwrap_or_default();
        let trial = SettingsFile::new(TRIAL, [self.text.as_bytes(), &main].concat()).mode(0o600);
        trial.write(node)?;
        ssh_server::make_run_folder(node)?;
        let path = node.outside(Path::new(TRIAL)).display().to_string();
        let judged = sshd.need(&["-t", "-f", &path], &[], LIMIT).map(drop);
        node.remove(Path::new(TRIAL))?;
        judged
    }

    fn include(&self, node: &Node) -> Result<(), ApplyError> {
        let main = node.read(Path::new(MAIN))?.unwrap_or_default();
        if includes_folder(&main) || self.claims.hold(MAIN) {
            return Ok(());
        }
        let mut lines = Lines::of(&main);
        lines.push_front(INCLUDE.as_bytes());
        let mode = node.mode(Path::new(MAIN))?.unwrap_or(0o644);
        SettingsFile::new(MAIN, lines.into_bytes()).mode(mode).write(node)
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
        self.file().write_checked(node, |_| {
            self.check(node)?;
            DueReload::SSHD.set(node)
        })?;
        self.include(node)?;
        ssh_server::reload(node)?;
        DueReload::SSHD.clear(node)
    }
}

/// Whether the server's own configuration reads the folder of orch's file.
fn includes_folder(main: &[u8]) -> bool {
    settings(main).any(|(key, value)| key == "include" && value.contains("sshd_config.d/"))
}

/// The settings of a text that hold for every connection, in order: what follows a `Match` holds for some.
fn settings(text: &[u8]) -> impl Iterator<Item = (String, String)> {
    let lines = String::from_utf8_lossy(text).into_owned();
    let lines: Vec<String> = lines.lines().map(|line| line.trim().to_string()).collect();
    let pairs = lines.into_iter().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let (key, value) = line.split_once(|c: char| c.is_whitespace() || c == '=').unwrap_or((&line, ""));
        (key.to_ascii_lowercase(), value.trim().to_string())
    });
    pairs.take_while(|(key, _)| key != "match")
}
