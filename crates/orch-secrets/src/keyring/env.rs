//! The variables that say where identities are, and the places that sops looks at without them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Keyring, command};
use crate::Secret;

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
    /// How long the command may take; 30 seconds without it.
    pub deadline: Option<Duration>,
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
            deadline: None,
        }
    }

    /// Reads it from the environment of this process.
    pub fn of_process() -> Self {
        Self::of(|name| std::env::var_os(name))
    }
}

pub(super) fn fill(ring: &mut Keyring, env: &Env) {
    if let Some(key) = &env.key {
        ring.add_bytes("SOPS_AGE_KEY", key.expose());
    }
    if let Some(path) = &env.key_file {
        ring.add_file(&place("SOPS_AGE_KEY_FILE", path), path);
    }
    if let Some(line) = &env.key_command {
        match command::output(
            &String::from_utf8_lossy(line.expose()),
            env.deadline.unwrap_or(Duration::from_secs(30)),
        ) {
            Ok(bytes) => ring.add_bytes("SOPS_AGE_KEY_CMD", &bytes),
            Err(why) => ring.notes.push(format!("SOPS_AGE_KEY_CMD ({why})")),
        }
    }
    let config = env.config_home.clone().or_else(|| env.home.as_ref().map(|home| home.join(".config")));
    if let Some(path) = config.map(|folder| folder.join("sops/age/keys.txt")) {
        ring.add_file(&format!("`{}`", path.display()), &path);
    }
    if let Some(path) = &env.ssh_key_file {
        ring.add_file(&place("SOPS_AGE_SSH_PRIVATE_KEY_FILE", path), path);
    }
    if let Some(path) = env.home.as_ref().map(|home| home.join(".ssh/id_ed25519")) {
        ring.add_file(&format!("`{}`", path.display()), &path);
    }
}

fn place(variable: &str, path: &Path) -> String {
    format!("{variable}=`{}`", path.display())
}
