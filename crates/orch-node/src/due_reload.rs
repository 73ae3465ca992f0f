//! A server that is yet to be told of what was written for it.
//!
//! The mark is set before the settings are in place and taken away once the server was told, so that a cut in between is
//! seen by the next look. It lies where nothing survives a reboot, after which the server has read its settings anyway.

use std::borrow::Cow;
use std::path::Path;

use orch_model::Unit;

use crate::error::ApplyError;
use crate::node::Node;
use crate::settings_file::SettingsFile;

/// What a look says of a mark that was left behind.
pub(crate) const UNTOLD: &str = "its settings were written, and it was not told of them";

/// The mark of one server.
pub(crate) struct DueReload(Cow<'static, str>);

impl DueReload {
    pub(crate) const SSHD: Self = Self(Cow::Borrowed("/run/orch/sshd-reload-due"));
    pub(crate) const FAIL2BAN: Self = Self(Cow::Borrowed("/run/orch/fail2ban-reload-due"));

    /// The mark of a unit that runs as its file said before.
    pub(crate) fn of_unit(unit: &Unit) -> Self {
        Self(Cow::Owned(format!("/run/orch/restart-due/{unit}")))
    }

    pub(crate) fn is_set(&self, node: &Node) -> bool {
        node.has(&self.0)
    }

    pub(crate) fn set(&self, node: &Node) -> Result<(), ApplyError> {
        SettingsFile::new(self.0.as_ref(), "").mode(0o600).write(node)
    }

    pub(crate) fn clear(&self, node: &Node) -> Result<(), ApplyError> {
        node.remove(Path::new(self.0.as_ref()))
    }
}
