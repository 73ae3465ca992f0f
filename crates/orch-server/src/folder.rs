//! What the server of a site keeps: its keys, certificates, the ledger of tokens and what nodes reported.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use orch_model::SiteName;
use orch_run::StateDir;
use orch_secrets::Identities;

use crate::files::make_folder;

/// The folder of one site's server.
#[derive(Debug, Clone)]
pub struct ServerFolder {
    path: PathBuf,
    /// The site that it is for, where that may keep its signing keys.
    site: Option<(PathBuf, Identities)>,
}

/// The right to be the server of a site, held for as long as this lives.
#[derive(Debug)]
pub struct Office {
    _lock: File,
}

impl ServerFolder {
    /// The folder of a site's server below the driver's own.
    pub fn of(state: &StateDir, site: &SiteName) -> Self {
        Self { path: state.server().join(site.as_str()), site: None }
    }

    /// The same, for the site in this folder, whose secrets these identities open.
    pub fn of_site(self, root: &Path, identities: Identities) -> Self {
        Self { site: Some((root.to_owned(), identities)), ..self }
    }

    /// The site that it is for, and who can open its secrets.
    pub(crate) fn site(&self) -> Option<&(PathBuf, Identities)> {
        self.site.as_ref()
    }

    /// Makes it.
    pub fn make(&self) -> io::Result<()> {
        make_folder(&self.path)
    }

    /// Takes the right to be the server; nothing where somebody has it.
    pub fn take_office(&self) -> io::Result<Option<Office>> {
        self.make()?;
        let path = self.path.join("lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Office { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.path.join("keys")
    }

    pub(crate) fn certificates(&self) -> PathBuf {
        self.path.join("certificates.json")
    }

    /// Where it is written down which tokens were used.
    pub fn ledger_path(&self) -> PathBuf {
        self.path.join("ledger.jsonl")
    }

    pub(crate) fn reports(&self) -> PathBuf {
        self.path.join("reports")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything that the server keeps.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
