//! The keys that sign tokens: a file each, for this user alone, the first one made when it is needed.

use std::fs;
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use orch_model::KeyName;
use orch_model::token::{Keyring, SigningKey};
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::files::{lock, make_folder, replace};
use crate::folder::ServerFolder;

/// The keys cannot be had.
#[derive(Debug, Error)]
pub enum KeyError {
    /// A file cannot be read or written.
    #[error("the signing keys in `{path}` cannot be used")]
    File {
        /// Where they are.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file does not hold a key.
    #[error("`{path}` does not hold a signing key: {why}")]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// The keys of a server.
#[derive(Debug, Clone)]
pub struct Keys {
    folder: PathBuf,
}

impl Keys {
    /// The keys of this server.
    pub fn of(folder: &ServerFolder) -> Self {
        Self { folder: folder.keys() }
    }

    /// Every key; the first one is made where there is none.
    pub fn ring(&self) -> Result<Keyring, KeyError> {
        let ring = self.read()?;
        if !ring.is_empty() {
            return Ok(ring);
        }
        let _lock = self.lock()?;
        // Somebody else may have made one meanwhile.
        if self.read()?.is_empty() {
            self.make()?;
        }
        self.read()
    }

    /// Whether there is any.
    pub fn exist(&self) -> bool {
        self.read().is_ok_and(|ring| !ring.is_empty())
    }

    /// Makes a key that signs from now on. The others are still believed.
    pub fn rotate(&self) -> Result<KeyName, KeyError> {
        let _lock = self.lock()?;
        self.make()
    }

    /// Takes a key away: tokens that it signed are not believed any more. Whether there was one of that name.
    pub fn retire(&self, key: &KeyName) -> Result<bool, KeyError> {
        let _lock = self.lock()?;
        match fs::remove_file(self.folder.join(key.as_str())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn lock(&self) -> Result<fs::File, KeyError> {
        let locked = make_folder(&self.folder).and_then(|()| lock(&self.folder.join(".lock")));
        locked.map_err(|error| self.failed(error))
    }

    /// Makes a key, later by its name than all before: the last one signs.
    fn make(&self) -> Result<KeyName, KeyError> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom(&mut *bytes, GetRandomFlags::empty()).map_err(|error| self.failed(error.into()))?;
        let name = format!("k{}", Timestamp::now().as_microsecond());
        let id: KeyName = name.parse().expect("digits are a key name");
        let text = SigningKey::new(id.clone(), bytes).expose();
        replace(&self.folder.join(&name), text.as_bytes()).map_err(|error| self.failed(error))?;
        Ok(id)
    }

    fn read(&self) -> Result<Keyring, KeyError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Keyring::default()),
            entries => entries.map_err(|error| self.failed(error))?,
        };
        let mut keys = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| self.failed(error))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_key = !name.starts_with('.') && path.extension().is_none_or(|ending| ending != "new");
            let Some(id) = is_key.then(|| name.parse().ok()).flatten() else { continue };
            let text = fs::read_to_string(&path).map(Zeroizing::new).map_err(|error| self.failed(error))?;
            let key = SigningKey::parse(id, &text);
            keys.push(key.map_err(|why| KeyError::NotAKey { path: path.clone(), why })?);
        }
        Ok(keys.into_iter().collect())
    }

    fn failed(&self, source: io::Error) -> KeyError {
        KeyError::File { path: self.folder.clone(), source }
    }
}
