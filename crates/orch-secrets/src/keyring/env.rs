//! The variables that say where identities are, and the places that sops looks at without them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::{Keyring, command};
use crate::Secret;

/// How long the command may take: it may ask somebody for a password.
const DEADLINE: Duration = Duration::from_secs(30);

/// What of the environment has to do with identities.
#[derive(Debug, Clone, Default)]
pub struct Env {
    /// `SOPS_AGE_KEY`: identities themselves.
    pub key: Option<Secret>,
    /// `SOPS_AGE_KEY_FILE`: a file of identities.
    pub key_file: Option<PathBuf>,
    /// `SOPS_AGE_KEY_CMD`: a command that prints identities. Its arguments may be secret themselves.
    pub key_command: Option<Secret>,
    /// `SOPS_AGE_SSH_PRIVATE_KEY_FILE`: a private key of SSH.
    pub ssh_key_file: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
}

impl Env {
    /// Reads it from whatever knows variables.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str| given(name).map(PathBuf::from);
        let text = |name: &str| given(name).and_then(|value| value.into_string().ok());
        Self {
            key: text("SOPS_AGE_KEY").map(Secret::from),
            key_file: path("SOPS_AGE_KEY_FILE"),
            key_command: text("SOPS_AGE_KEY_CMD").map(Secret::from),
            ssh_key_file: path("SOPS_AGE_SSH_PRIVATE_KEY_FILE"),
            config_home: path("XDG_CONFIG_HOME"),
            home: path("HOME"),
        }
    }

    /// Reads it from the environment of this process.
    pub fn of_process() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    /// The files that identities are taken from, whether they are there or not.
    pub fn files(&self) -> Vec<PathBuf> {
        self.places().map(|(_, path)| path).collect()
    }

    /// The files, each with the variable that names it; the others are where sops looks without one.
    fn places(&self) -> impl Iterator<Item = (Option<&'static str>, PathBuf)> {
        let home = |path: &str| self.home.as_ref().map(|home| home.join(path));
        let config = self.config_home.clone().or_else(|| home(".config"));
        let places = [
            (Some("SOPS_AGE_KEY_FILE"), self.key_file.clone()),
            (None, config.map(|folder| folder.join("sops/age/keys.txt"))),
            (Some("SOPS_AGE_SSH_PRIVATE_KEY_FILE"), self.ssh_key_file.clone()),
            (None, home(".ssh/id_ed25519")),
        ];
        places.into_iter().filter_map(|(variable, path)| Some((variable, path?)))
    }
}

pub(super) fn fill(ring: &mut Keyring, env: &Env) {
    if let Some(key) = &env.key {
        ring.add_bytes("SOPS_AGE_KEY", key.expose());
    }
    if let Some(line) = &env.key_command {
        match command::output(&String::from_utf8_lossy(line.expose()), DEADLINE) {
            Ok(bytes) => ring.add_bytes("SOPS_AGE_KEY_CMD", &bytes),
            Err(why) => ring.notes.push(format!("SOPS_AGE_KEY_CMD ({why})")),
        }
    }
    for (variable, path) in env.places() {
        let name = variable.map(|variable| format!("{variable}=")).unwrap_or_default();
        ring.add_file(&format!("{name}`{}`", path.display()), &path);
    }
}
