//! fail2ban: its package, a jail for the SSH server, and its service. Where it is not wanted, the jail of orch's goes and
//! the service is switched off; the package stays.

use std::path::Path;

use orch_model::Package;

use super::{Look, Resource, SHARES_PROGRAMS};
use crate::due_reload::{DueReload, UNTOLD};
use crate::error::ApplyError;
use crate::node::Node;
use crate::package_manager::PackageManager;
use crate::settings_file::SettingsFile;
use crate::systemd::Systemd;

const JAIL: &str = "/etc/fail2ban/jail.d/orch.local";
const UNIT: &str = "fail2ban.service";

pub(super) struct Fail2ban {
    is_wanted: bool,
    port: u16,
}

impl Fail2ban {
    pub(super) const fn new(is_wanted: bool, port: u16) -> Self {
        Self { is_wanted, port }
    }

    fn jail(&self) -> SettingsFile<'static> {
        let text = format!(
            "# Written by orch; changes are undone by its next run.\n[sshd]\nenabled = true\nport = {}\nbackend = systemd\n",
            self.port
        );
        SettingsFile::new(JAIL, text)
    }

    fn look_at_wanted(&self, node: &Node) -> Result<Look, ApplyError> {
        let Some(systemd) = Systemd::of(node) else {
            return Ok(Look::skip("fail2ban needs systemd, which does not run here"));
        };
        if !is_installed(node) {
            if node.has(SHARES_PROGRAMS) {
                return Ok(Look::skip("fail2ban is not installable here"));
            }
            return match PackageManager::of(node) {
                Some(_) => Ok(Look::Differs("it is not installed".into())),
                None => {
                    Ok(Look::skip("fail2ban cannot be installed: no package manager that orch knows is here"))
                }
            };
        }
        if let Some(how) = self.jail().difference(node)? {
            return Ok(Look::Differs(format!("{JAIL}: {how}")));
        }
        let state = systemd.state(UNIT)?;
        if !state.runs() || !state.is_enabled() {
            return Ok(Look::Differs(state.words()));
        }
        Ok(Look::of(DueReload::FAIL2BAN.is_set(node).then(|| UNTOLD.into())))
    }

    fn look_at_unwanted(node: &Node) -> Result<Look, ApplyError> {
        if node.read(Path::new(JAIL))?.is_some() {
            return Ok(Look::Differs("its jail is there, and should not be".into()));
        }
        Ok(Look::of(
            DueReload::FAIL2BAN.is_set(node).then(|| "its jail is gone, and it may still run".into()),
        ))
    }

    fn make_wanted(&self, node: &Node) -> Result<(), ApplyError> {
        if let Some(manager) = PackageManager::of(node).filter(|_| !is_installed(node)) {
            manager
                .install(&["fail2ban".parse::<Package>().expect("`fail2ban` is the name of a package")])?;
        }
        self.jail().write(node)?;
        let Some(systemd) = Systemd::of(node) else { return Ok(()) };
        // One that is started now reads its jails by itself, and cannot be told to before it has: it counts as running
        // from its first moment.
        let ran = systemd.state(UNIT)?.runs();
        systemd.change(&["enable", "--now"], UNIT)?;
        if ran { systemd.change(&["reload"], UNIT) } else { Ok(()) }
    }

    /// Our jail is what the service was switched on for; without it, it may not even be able to start.
    fn make_unwanted(node: &Node) -> Result<(), ApplyError> {
        node.remove(Path::new(JAIL))?;
        match Systemd::of(node) {
            // Somebody may have removed the package by hand.
            Some(systemd) if systemd.state(UNIT)?.is_known() => systemd.change(&["disable", "--now"], UNIT),
            _ => Ok(()),
        }
    }
}

fn is_installed(node: &Node) -> bool {
    node.tool("fail2ban-server").is_some()
}

impl Resource for Fail2ban {
    fn kind(&self) -> &'static str {
        "fail2ban"
    }

    fn name(&self) -> String {
        "sshd".into()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        if self.is_wanted { self.look_at_wanted(node) } else { Self::look_at_unwanted(node) }
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        DueReload::FAIL2BAN.set(node)?;
        if self.is_wanted {
            self.make_wanted(node)?;
        } else {
            Self::make_unwanted(node)?;
        }
        DueReload::FAIL2BAN.clear(node)
    }
}
