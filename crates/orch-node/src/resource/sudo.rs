//! Whether an account may use `sudo`: a file of orch's for each, which `visudo` finds good before it counts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use orch_model::UserName;
use orch_model::config::User;

use super::{Look, Resource, SHARES_PROGRAMS};
use crate::accounts;
use crate::error::ApplyError;
use crate::node::Node;
use crate::settings_file::SettingsFile;

const LIMIT: Duration = Duration::from_secs(20);

pub(super) struct Sudo {
    user: UserName,
    may: bool,
    without_password: bool,
}

impl Sudo {
    pub(super) fn new(user: &User, without_password: bool) -> Self {
        Self { user: user.name.clone(), may: user.sudo, without_password }
    }

    fn path(&self) -> PathBuf {
        Path::new("/etc/sudoers.d").join(format!("orch-{}", self.user))
    }

    fn text(&self) -> String {
        let how = if self.without_password { "NOPASSWD: ALL" } else { "ALL" };
        format!("{} ALL=(ALL:ALL) {how}\n", self.user)
    }
}

/// What the account may do is said of a file that only `sudo` reads.
fn check(node: &Node, draft: &Path) -> Result<(), ApplyError> {
    let Some(visudo) = node.tool("visudo") else { return Ok(()) };
    let draft = node.outside(draft).display().to_string();
    visudo.need(&["-c", "-q", "-f", &draft], &[], LIMIT).map(drop)
}

/// Whoever was promised sudo on a machine that could have it would find out at the worst moment.
fn no_sudo(node: &Node) -> Result<Look, ApplyError> {
    if node.has(SHARES_PROGRAMS) || !node.runs_programs() {
        return Ok(Look::skip("sudo is not installed here"));
    }
    let why =
        "sudo is not installed: have `sudo` among the packages of the spec, or `sudo: false` for the user";
    Err(ApplyError::Impossible(why.into()))
}

impl Resource for Sudo {
    fn kind(&self) -> &'static str {
        "sudo"
    }

    fn name(&self) -> String {
        self.user.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        if self.user.as_str() == "root" {
            return Ok(Look::AsWanted);
        }
        if !accounts::is_possible(node, &self.user) {
            return Ok(Look::skip(accounts::NO_ACCOUNTS));
        }
        if !self.may {
            let has = node.read(&self.path())?.is_some();
            return Ok(Look::of(has.then(|| "it may, and should not".into())));
        }
        if node.tool("sudo").is_none() {
            return no_sudo(node);
        }
        let path = self.path();
        Ok(Look::of(SettingsFile::new(&path, self.text()).mode(0o440).difference(node)?))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let path = self.path();
        if !self.may {
            return node.remove(&path);
        }
        SettingsFile::new(&path, self.text()).mode(0o440).write_checked(node, |draft| check(node, draft))
    }
}
