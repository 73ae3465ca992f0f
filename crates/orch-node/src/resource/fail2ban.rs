//! fail2ban: its package, a jail for the SSH server, and its service. Where it is not wanted, only the jail is orch's to
//! take away.

use std::path::Path;

use orch_model::Package;

use super::{Look, Resource, SHARES_PROGRAMS};
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
        Ok(Look::of((!state.runs() || !state.is_enabled()).then(|| state.words())))
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
        if self.is_wanted {
            return self.look_at_wanted(node);
        }
        Ok(Look::of(node.read(Path::new(JAIL))?.map(|_| "its jail is there, and should not be".into())))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let systemd = Systemd::of(node);
        if !self.is_wanted {
            // Our jail is what the service was switched on for; without it, it may not even be able to start.
            node.remove(Path::new(JAIL))?;
            return systemd.map_or(Ok(()), |systemd| systemd.change(&["disable", "--now"], UNIT));
        }
        if let Some(manager) = PackageManager::of(node).filter(|_| !is_installed(node)) {
            manager
                .install(&["fail2ban".parse::<Package>().expect("`fail2ban` is the name of a package")])?;
        }
        self.jail().write(node)?;
        let Some(systemd) = systemd else { return Ok(()) };
        // One that is started now reads its jails by itself, and cannot be told to before it has: it counts as running
        // from its first moment.
        let ran = systemd.state(UNIT)?.runs();
        systemd.change(&["enable", "--now"], UNIT)?;
        if ran { systemd.change(&["reload"], UNIT) } else { Ok(()) }
    }
}
