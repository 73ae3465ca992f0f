//! What a lab says of itself, for those who want to use it: `lab.json` in its folder, which nobody else can read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use orch_model::HostName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::lab_error::LabError;
use crate::served_by::lives;
use crate::settings::HostKind;
use crate::state;

/// Which version of the lab's files this is. Another one is not read: what a lab was to one version of orch may be something
/// else to the next.
const VERSION: u64 = 1;

/// A file, and which version it is of.
#[derive(Serialize)]
struct Versioned<'v, T> {
    version: u64,
    #[serde(flatten)]
    value: &'v T,
}

/// Reads a file of a lab; nothing where there is none.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, LabError> {
    let Some(found) = state::read::<Json>(path).map_err(LabError::file(path))? else { return Ok(None) };
    if found["version"] != VERSION {
        return Err(LabError::Version(path.to_owned()));
    }
    serde_json::from_value(found).map(Some).map_err(|error| LabError::file(path)(error.into()))
}

/// Writes a file of a lab.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), LabError> {
    state::write(path, &Versioned { version: VERSION, value }).map_err(LabError::file(path))
}

/// Where a driver keeps what it does in the lab of a folder: apart from what it does for real.
pub fn driver_folder(lab: &Path) -> PathBuf {
    lab.join("driver")
}

/// What opens an API.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    /// A new one, of the form that such a host has.
    pub(crate) fn make(kind: HostKind) -> Self {
        Self(match kind {
            HostKind::Proxmox => format!("root@pam!orch={}", Uuid::new_v4()),
            HostKind::Hetzner => format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()),
        })
    }

    /// Its text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// What is to be known of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabFileHost {
    /// What it is.
    pub kind: HostKind,
    /// Where its API is, such as `https://127.64.0.1:8006`.
    pub endpoint: String,
    /// By what its certificate is known: SHA-256, as `AA:BB:…`.
    pub fingerprint: String,
    /// What opens it.
    pub token: Token,
    /// Proxmox: the name of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Proxmox: where disks are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datastore: Option<String>,
    /// Where its machines have the `orch-node` program, where they are more than paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_program: Option<String>,
}

impl LabFileHost {
    /// The address of its API as a host's file has it.
    pub fn address(&self) -> String {
        match self.kind {
            HostKind::Proxmox => self.endpoint.clone(),
            HostKind::Hetzner => format!("{}/v1", self.endpoint),
        }
    }
}

/// A lab, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabFile {
    /// Tells it from every other lab.
    pub lab: Uuid,
    /// The process that serves it.
    pub pid: u32,
    /// When that process started, in the kernel's ticks: with the pid it names one process for ever.
    pub started: u64,
    /// Its hosts.
    pub hosts: BTreeMap<HostName, LabFileHost>,
}

impl LabFile {
    /// Whether the process that served it still runs, or holds anything of it.
    pub fn is_served(&self) -> bool {
        self.server().lives()
    }

    pub(crate) const fn server(&self) -> Server {
        Server { pid: self.pid, started: self.started }
    }
}

/// The process that serves a lab: all that is to be known of a lab, of whatever version, to end it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Server {
    pub(crate) pid: u32,
    pub(crate) started: u64,
}

impl Server {
    /// Who serves the lab of a folder, as far as that can be told.
    pub(crate) fn of(folder: &LabFolder) -> Option<Self> {
        state::read(&folder.file()).ok()?
    }

    pub(crate) fn lives(self) -> bool {
        lives(self.pid, self.started)
    }
}

/// The files of a lab's folder.
#[derive(Debug, Clone)]
pub(crate) struct LabFolder(PathBuf);

impl LabFolder {
    pub(crate) fn at(path: &Path) -> Self {
        Self(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("lab.json")
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    /// What stays the same whenever the lab comes up again.
    pub(crate) fn identity(&self) -> PathBuf {
        self.0.join("identity.json")
    }

    pub(crate) fn addresses(&self) -> PathBuf {
        self.0.join("addresses.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("daemon.lock")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("daemon.log")
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.0.join("control.sock")
    }

    pub(crate) fn hosts(&self) -> PathBuf {
        self.0.join("hosts")
    }

    pub(crate) fn driver(&self) -> PathBuf {
        driver_folder(&self.0)
    }

    /// Everything of one host.
    pub(crate) fn host(&self, name: &HostName) -> PathBuf {
        self.hosts().join(name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_written_to_the_file_and_never_shown_otherwise() {
        for kind in [HostKind::Proxmox, HostKind::Hetzner] {
            let token = Token::make(kind);
            assert_eq!(format!("{token:?}"), "Token");
            let written = serde_json::to_string(&token).expect("it can be written");
            assert_eq!(written, format!("{:?}", token.expose()));
        }
        assert_eq!(Token::make(HostKind::Hetzner).expose().len(), 64);
        assert!(Token::make(HostKind::Proxmox).expose().starts_with("root@pam!orch="));
    }

    #[test]
    fn a_file_of_another_version_or_of_none_is_not_read_and_its_server_is_known_still() {
        let place = tempfile::tempdir().expect("a folder can be made");
        let folder = LabFolder::at(place.path());
        let file = LabFile { lab: Uuid::new_v4(), pid: 1, started: 2, hosts: BTreeMap::new() };
        assert!(read::<LabFile>(&folder.file()).expect("there is none").is_none());
        write(&folder.file(), &file).expect("it can be written");
        assert_eq!(read(&folder.file()).expect("it is of this version"), Some(file));
        for other in [r#"{"pid": 1, "started": 2}"#, r#"{"version": 2, "pid": 1, "started": 2}"#] {
            std::fs::write(folder.file(), other).expect("it can be written");
            assert!(matches!(read::<LabFile>(&folder.file()), Err(LabError::Version(_))), "{other}");
            assert_eq!(Server::of(&folder).map(|server| (server.pid, server.started)), Some((1, 2)));
        }
    }
}
