//! What puts the secrets of a node in place when it starts, before anything that may need them and without anybody's help,
//! where systemd is the first process. Our own init does it itself.

use std::path::Path;

use orch_model::Config;

use crate::error::ApplyError;
use crate::node::Node;
use crate::pull::quoted;
use crate::resource::{Look, Resource};
use crate::settings_file::SettingsFile;
use crate::systemd::Systemd;

const UNIT: &str = "orch-secrets.service";
const PATH: &str = "/etc/systemd/system/orch-secrets.service";

/// Where this exists, what systemd runs is said by the modules of the system, and by nobody else.
const SAYS_ITS_UNITS: &str = "/etc/NIXOS";

/// The unit that puts secrets in place at boot: there where there are any, and gone where there are none.
pub(in crate::resource) struct Boot {
    has_secrets: bool,
}

impl Boot {
    /// Nothing where there is no systemd, or nothing to do.
    pub(in crate::resource) fn of(node: &Node, config: &Config) -> Option<Self> {
        let has_secrets = !config.role.secrets.is_empty();
        let is_concerned = has_secrets || node.has(PATH);
        Systemd::of(node).filter(|_| is_concerned).map(|_| Self { has_secrets })
    }

    fn difference(&self, node: &Node, systemd: &Systemd) -> Result<Option<String>, ApplyError> {
        if !self.has_secrets {
            return Ok(Some("there is no secret to put in place at boot any more".into()));
        }
        if let Some(how) = file()?.difference(node)? {
            return Ok(Some(format!("the unit that puts secrets in place at boot: {how}")));
        }
        let state = systemd.state(UNIT)?;
        let is_ready = state.is_known() && state.is_enabled() && !state.is_outdated();
        Ok((!is_ready).then(|| format!("the unit that puts secrets in place at boot: {}", state.words())))
    }
}

/// The unit, for the program that this is.
fn file() -> Result<SettingsFile<'static>, ApplyError> {
    let program = std::env::current_exe().map_err(ApplyError::file("find", crate::push::SELF.as_ref()))?;
    Ok(SettingsFile::new(PATH, unit(&program.to_string_lossy())))
}

/// Its text. Everything that is not part of starting the system itself waits for `sysinit.target`.
fn unit(program: &str) -> String {
    format!(
        "[Unit]\n\
         Description=Puts the secrets of this node in place\n\
         DefaultDependencies=no\n\
         RequiresMountsFor=/var/lib/orch /run\n\
         After=local-fs.target systemd-tmpfiles-setup.service\n\
         Before=sysinit.target shutdown.target\n\
         Conflicts=shutdown.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={program} unseal\n\
         LimitCORE=0\n\
         \n\
         [Install]\n\
         WantedBy=sysinit.target\n",
        program = quoted(program)
    )
}

impl Resource for Boot {
    fn kind(&self) -> &'static str {
        "secrets"
    }

    fn name(&self) -> String {
        "boot".into()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        let Some(systemd) = Systemd::of(node) else { return Ok(Look::AsWanted) };
        if node.has(SAYS_ITS_UNITS) {
            return Ok(Look::skip("the modules of this system say what it runs at boot"));
        }
        if !self.has_secrets && !node.has(PATH) {
            return Ok(Look::AsWanted);
        }
        Ok(Look::of(self.difference(node, &systemd)?))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let Some(systemd) = Systemd::of(node) else { return Ok(()) };
        if self.has_secrets {
            file()?.write(node)?;
            systemd.read_units_again()?;
            // Not started: whoever applies has put them in place, and who puts them there waits for who applies.
            return systemd.change(&["enable"], UNIT);
        }
        systemd.change(&["disable"], UNIT)?;
        node.remove(Path::new(PATH))?;
        systemd.read_units_again()
    }
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn secrets_are_in_place_before_anything_ordinary_starts() {
        let unit = unit("/var/lib/orch/bin/orch node");
        assert!(unit.contains("\nExecStart=\"/var/lib/orch/bin/orch node\" unseal\n"), "{unit}");
        assert!(unit.contains("\nBefore=sysinit.target ") && unit.contains("\nDefaultDependencies=no\n"));
    }
}
