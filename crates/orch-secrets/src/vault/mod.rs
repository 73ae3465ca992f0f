//! The sops files of a site: where a mention leads, and what is there.

mod error;
mod files;
mod identities;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use orch_model::{SecretDigest, SecretRef};

use crate::Secret;
use crate::keyring::Keyring;
use crate::path::{KeyPath, Reference};
use crate::rules::{self, Rules};
use crate::sops::{Format, Opened, SopsFile};

pub use error::VaultError;
pub use files::FOLDER;
pub use identities::Identities;

/// Where a mention leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The file, relative to the site.
    pub file: String,
    /// Where in it; the root of a file that is one value.
    pub path: KeyPath,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_root() { f.write_str(&self.file) } else { write!(f, "{}#{}", self.file, self.path) }
    }
}

/// The sops files of a site, as they are when they are first asked for, with the identities that may open them. What was
/// opened stays so until this is dropped: it is for one run, or for one answer.
pub struct Vault {
    root: PathBuf,
    identities: Identities,
    ring: OnceLock<Arc<Keyring>>,
    read: Mutex<BTreeMap<String, Arc<Result<SopsFile, VaultError>>>>,
    opened: Mutex<BTreeMap<String, Arc<Result<Opened, VaultError>>>>,
}

impl Vault {
    /// The files of the site in this folder.
    pub fn new(root: &Path, identities: Identities) -> Self {
        let root = root.to_owned();
        Self { root, identities, ring: OnceLock::new(), read: Mutex::default(), opened: Mutex::default() }
    }

    /// The site's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The identities that may open files: the same until this is dropped, as everything that it was opened with.
    pub fn keyring(&self) -> &Keyring {
        self.ring.get_or_init(|| self.identities.ring())
    }

    /// Every file below `secrets/`, relative to the site, in order.
    pub fn files(&self) -> Result<Vec<String>, VaultError> {
        files::list(&self.root)
    }

    /// A file, read and not opened.
    pub fn file(&self, file: &str) -> Arc<Result<SopsFile, VaultError>> {
        let mut read = self.read.lock().expect("nobody panics while holding this");
        let known = read.entry(file.to_owned()).or_insert_with(|| Arc::new(self.parse_now(file)));
        Arc::clone(known)
    }

    /// A file as it is now, read and not opened, for who changes it: another process may have done so since the run began.
    pub fn parse_now(&self, file: &str) -> Result<SopsFile, VaultError> {
        Ok(SopsFile::parse(file, &self.read(file)?)?)
    }

    /// The bytes of a file as they are now. Only regular files are read, and none that is too large to be one of sops.
    pub fn read(&self, file: &str) -> Result<Vec<u8>, VaultError> {
        files::read(&self.root, file)
    }

    /// The rules of the site as they are now: who may open which file. Nothing where it has none.
    pub fn rules(&self) -> Result<Option<Rules>, VaultError> {
        let bytes = match self.read(rules::FILE) {
            Err(VaultError::NoFile { .. }) => return Ok(None),
            bytes => bytes?,
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| VaultError::Unreadable {
            file: rules::FILE.to_owned(),
            why: error.to_string(),
        })?;
        Ok(Some(Rules::parse(text)?))
    }

    /// Where a mention leads. Needs no identity: the names of values are in clear.
    pub fn find(&self, mention: &SecretRef) -> Result<Spot, VaultError> {
        let malformed = |why| VaultError::Malformed { mention: mention.clone(), why };
        match Reference::of(mention).map_err(malformed)? {
            Reference::File { file, path } => self.find_in(&file, path),
            Reference::Short(name) => self.find_by_name(mention, &name),
        }
    }

    fn find_in(&self, file: &str, path: KeyPath) -> Result<Spot, VaultError> {
        let sops = self.file(file);
        let sops = sops.as_ref().as_ref().map_err(Clone::clone)?;
        let spot = Spot { file: file.to_owned(), path };
        if names(file, sops).any(|(_, found)| found == spot.path) {
            return Ok(spot);
        }
        match sops.paths().into_iter().next().filter(|_| spot.path.is_root()) {
            Some(example) => Err(VaultError::WhichValue { file: spot.file, example }),
            None => Err(VaultError::NoValue { file: spot.file, path: spot.path }),
        }
    }

    fn find_by_name(&self, mention: &SecretRef, name: &str) -> Result<Spot, VaultError> {
        let (mut spots, mut unread) = (Vec::new(), Vec::new());
        for file in self.files()? {
            match self.file(&file).as_ref() {
                Ok(sops) => spots.extend(
                    names(&file, sops)
                        .filter(|(found, _)| found == name)
                        .map(|(_, path)| Spot { file: file.clone(), path }),
                ),
                Err(_) => unread.push(file),
            }
        }
        match spots.len() {
            1 => Ok(spots.remove(0)),
            0 => Err(VaultError::Nowhere { mention: mention.clone(), unread }),
            _ => Err(VaultError::Ambiguous { mention: mention.clone(), spots }),
        }
    }

    /// Opens a file, or says why not.
    pub fn open(&self, file: &str) -> Arc<Result<Opened, VaultError>> {
        let mut opened = self.opened.lock().expect("nobody panics while holding this");
        let known = opened.entry(file.to_owned()).or_insert_with(|| {
            let sops = self.file(file);
            Arc::new(match sops.as_ref() {
                Ok(sops) => sops.open(self.keyring()).map_err(VaultError::from),
                Err(error) => Err(error.clone()),
            })
        });
        Arc::clone(known)
    }

    /// The value that a mention leads to.
    pub fn secret(&self, mention: &SecretRef) -> Result<Secret, VaultError> {
        let spot = self.find(mention)?;
        let opened = self.open(&spot.file);
        let opened = opened.as_ref().as_ref().map_err(Clone::clone)?;
        Ok(opened.secret(&spot.path)?)
    }

    /// By what the value that a mention leads to is known again. In another context the same value has another digest.
    pub fn digest(&self, mention: &SecretRef, context: &str) -> Result<SecretDigest, VaultError> {
        let spot = self.find(mention)?;
        let opened = self.open(&spot.file);
        let opened = opened.as_ref().as_ref().map_err(Clone::clone)?;
        // That it is one value at all is known by this.
        opened.secret(&spot.path)?;
        let digest = opened.digest(&spot.path, context);
        let digest = digest.ok_or(VaultError::NoValue { file: spot.file, path: spot.path })?;
        let text = digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        Ok(text.parse().expect("16 bytes are 32 hexadecimal digits"))
    }
}

/// The values of a file, by the names that a short mention may use: their paths, or for a file that is one value its own name,
/// with and without its ending.
fn names<'s>(file: &'s str, sops: &'s SopsFile) -> Box<dyn Iterator<Item = (String, KeyPath)> + 's> {
    if sops.format() != Format::Binary {
        return Box::new(sops.paths().into_iter().map(|path| (path.to_string(), path)));
    }
    let path = Path::new(file);
    let names = [path.file_name(), path.file_stem()];
    let mut names: Vec<String> =
        names.into_iter().flatten().map(|name| name.to_string_lossy().into_owned()).collect();
    names.dedup();
    Box::new(names.into_iter().map(|name| (name, KeyPath::default())))
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("root", &self.root).finish_non_exhaustive()
    }
}
