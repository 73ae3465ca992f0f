//! A server that is yet to be told of what was written for it.
//!
//! The mark is set before the settings are in place and taken away once the server was told, so that a cut in between is
//! seen by the next look. It lies where nothing survives a reboot, after which the server has read its settings anyway.

use std::path::Path;

use crate::error::ApplyError;
use crate::node::Node;
use crate::settings_file::SettingsFile;

/// What a look says of a mark that was left behind.
pub(crate) const UNTOLD: &str = "its settings were written, and it was not told of them";

/// The mark of one server.
#[derive(Clone, Copy)]
pub(crate) struct DueReload(&'static str);

impl DueReload {
    pub(crate) const SSHD: Self = Self("/run/orch/sshd-reload-due");
    pub(crate) const FAIL2BAN: Self = Self("/run/orch/fail2ban-reload-due");

    pub(crate) fn is_set(self, node: &Node) -> bool {
        node.has(self.0)
    }

    pub(crate) fn set(self, node: &Node) -> Result<(), ApplyError> {
        SettingsFile::new(self.0, "").mode(0o600).write(node)
    }

    pub(crate) fn clear(self, node: &Node) -> Result<(), ApplyError> {
        node.remove(Path::new(self.0))
    }
}
