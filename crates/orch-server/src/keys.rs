//! The keys that sign tokens: those that the site keeps in its sops files, or where it keeps none a file each, for this user
//! alone, the first one made when it is needed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use orch_model::token::{Keyring, SigningKey};
use orch_model::{KeyName, SecretRef, outline};
use orch_run::load;
use orch_secrets::{Identities, Secret, Vault, VaultError};
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::files::{lock, make_folder, replace, sync_folder_of};
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
    /// The site cannot be asked for its keys.
    #[error("the site cannot be asked for its signing keys: {0}")]
    Site(String),
    /// A key that the site keeps cannot be had.
    #[error("signing key `{key}`: {why}; {hint}")]
    Kept {
        /// Its name.
        key: KeyName,
        /// Why not.
        why: String,
        /// The way out.
        hint: String,
    },
    /// The site keeps the keys, so it decides which there are.
    #[error("the site keeps its signing keys itself: change `server.signing_keys` in its `site.yaml`")]
    SiteDecides,
}

/// The keys of a server.
#[derive(Debug, Clone)]
pub struct Keys {
    folder: PathBuf,
    site: Option<(PathBuf, Identities)>,
}

impl Keys {
    /// The keys of this server.
    pub fn of(folder: &ServerFolder) -> Self {
        Self { folder: folder.keys(), site: folder.site().cloned() }
    }

    /// Every key; the first one is made where there is none.
    pub fn ring(&self) -> Result<Keyring, KeyError> {
        let kept = self.kept()?;
        if !kept.is_empty() {
            return self.open(kept);
        }
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
        self.kept().is_ok_and(|kept| !kept.is_empty()) || self.read().is_ok_and(|ring| !ring.is_empty())
    }

    /// Makes a key that signs from now on. The others are still believed.
    pub fn rotate(&self) -> Result<KeyName, KeyError> {
        if !self.kept()?.is_empty() {
            return Err(KeyError::SiteDecides);
        }
        let _lock = self.lock()?;
        self.make()
    }

    /// Takes a key away: tokens that it signed are not believed any more, not even after a power cut. Whether there was one
    /// of that name.
    pub fn retire(&self, key: &KeyName) -> Result<bool, KeyError> {
        if !self.kept()?.is_empty() {
            return Err(KeyError::SiteDecides);
        }
        let _lock = self.lock()?;
        let path = self.folder.join(key.as_str());
        let was_there = match fs::remove_file(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(self.failed(error)),
        };
        // Also where it was gone: whoever removed it may not have come as far as this.
        sync_folder_of(&path).map_err(|error| self.failed(error))?;
        Ok(was_there)
    }

    /// Where the site keeps its keys, if it does.
    pub fn kept(&self) -> Result<BTreeMap<KeyName, SecretRef>, KeyError> {
        let Some((root, _)) = &self.site else { return Ok(BTreeMap::new()) };
        let unasked = |error: &dyn std::fmt::Display| KeyError::Site(error.to_string());
        let sources = load::site(root).map_err(|error| unasked(&error))?;
        Ok(outline(&sources).map_err(|problems| unasked(&problems))?.signing_keys)
    }

    /// The keys that the site keeps. The last one by its name signs.
    fn open(&self, kept: BTreeMap<KeyName, SecretRef>) -> Result<Keyring, KeyError> {
        let Some((root, identities)) = &self.site else { return Ok(Keyring::default()) };
        let vault = Vault::new(root, identities.clone());
        let key = |(id, mention): (KeyName, SecretRef)| {
            let failed = |error: &VaultError| KeyError::Kept {
                key: id.clone(),
                why: error.to_string(),
                hint: match error {
                    VaultError::NoFile { .. } | VaultError::NoValue { .. } => {
                        "`orch token rotate` makes it".into()
                    }
                    error => error.hint(),
                },
            };
            let secret = vault.secret(&mention).map_err(|error| failed(&error))?;
            let text = std::str::from_utf8(secret.expose()).unwrap_or_default();
            SigningKey::parse(id.clone(), text).map_err(|why| KeyError::Kept {
                key: id,
                why,
                hint: "`orch token rotate` makes those that are not there yet".into(),
            })
        };
        kept.into_iter().map(key).collect()
    }

    fn lock(&self) -> Result<fs::File, KeyError> {
        let locked = make_folder(&self.folder).and_then(|()| lock(&self.folder.join(".lock")));
        locked.map_err(|error| self.failed(error))
    }

    /// Makes a key, later by its name than all before: the last one signs.
    fn make(&self) -> Result<KeyName, KeyError> {
        let bytes = random().map_err(|error| self.failed(error))?;
        let last = self.read()?.current().map(|key| key.id().clone());
        let id = name_after(
            last.as_ref(),
            u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default(),
        )
        .ok_or_else(|| self.failed(io::Error::other("no name is left that comes after the last one")))?;
        let text = SigningKey::new(id.clone(), bytes).expose();
        replace(&self.folder.join(id.as_str()), text.as_bytes()).map_err(|error| self.failed(error))?;
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
            let text = match fs::read_to_string(&path).map(Zeroizing::new) {
                // It was retired a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text.map_err(|error| self.failed(error))?,
            };
            let key = SigningKey::parse(id, &text);
            keys.push(key.map_err(|why| KeyError::NotAKey { path: path.clone(), why })?);
        }
        Ok(keys.into_iter().collect())
    }

    fn failed(&self, source: io::Error) -> KeyError {
        KeyError::File { path: self.folder.clone(), source }
    }
}

/// A key for a site that keeps its keys itself, as text.
pub fn new_key() -> Result<Secret, KeyError> {
    let bytes = random().map_err(|error| KeyError::Site(error.to_string()))?;
    let id = "new".parse().expect("this is a name");
    Ok(Secret::new(SigningKey::new(id, bytes).expose().as_bytes().to_vec()))
}

fn random() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom(&mut *bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

/// A name that comes after the last one, also where the clock was set back since, or somebody else has named that one.
fn name_after(last: Option<&KeyName>, now: u64) -> Option<KeyName> {
    let text = last.map_or("", KeyName::as_str);
    let stem = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let counted = text[stem.len()..].parse::<u64>().ok().and_then(|number| number.checked_add(1));
    let names = [
        Some(format!("k{now}")),
        counted.map(|next| format!("{stem}{}", next.max(now))),
        counted.map(|next| format!("{stem}{next}")),
        Some(format!("{text}.k{now}")),
    ];
    names.into_iter().flatten().filter_map(|name| name.parse().ok()).find(|name| Some(name) > last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_new_key_comes_after_the_last_one_whatever_the_clock_says() {
        for (last, now, name) in [
            ("", 50, "k50"),
            ("k40", 50, "k50"),
            ("k50", 50, "k51"),
            ("k60", 50, "k61"),
            // More digits would come before fewer.
            ("k99", 50, "k99.k50"),
            ("k99.k50", 60, "k99.k60"),
            ("k99.k70", 60, "k99.k71"),
            ("main", 50, "main.k50"),
            ("a", 50, "k50"),
        ] {
            let last: Option<KeyName> = last.parse().ok();
            let found = name_after(last.as_ref(), now);
            assert_eq!(found.as_ref().map(KeyName::as_str), Some(name), "{last:?}");
        }
        let longest: KeyName = "z".repeat(128).parse().unwrap();
        assert_eq!(name_after(Some(&longest), 50), None);
    }
}
