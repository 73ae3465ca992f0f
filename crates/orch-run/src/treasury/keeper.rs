//! Changes to the sops files of a site: whom they are for, and values that orch makes itself. One process at a time, each
//! file whole or as it was.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use orch_model::{AgeRecipient, SecretRef};
use orch_secrets::rules::{Rules, add_recipient, remove_recipient};
use orch_secrets::sops::encrypt;
use orch_secrets::{Format, KeyPath, Reader, Reference, Secret, SopsFile, Step, Vault};

use super::TreasuryError;

/// The rules of the site: who may open which file.
const RULES: &str = ".sops.yaml";
/// How long another process that changes files is waited for.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Changes the sops files of a site.
pub(super) struct Keeper<'k> {
    vault: &'k Vault,
    _lock: File,
}

impl<'k> Keeper<'k> {
    /// Begins to change files, once nobody else does.
    pub(super) fn begin(vault: &'k Vault, lock: &Path) -> Result<Self, TreasuryError> {
        let locked = lock_file(lock).map_err(|error| {
            let what = format!("the sops files cannot be changed: `{}`: {error}", lock.display());
            TreasuryError { what, hint: "see whether another `orch` changes them, and run again".into() }
        })?;
        Ok(Self { vault, _lock: locked })
    }

    /// Lets one read these files, and those that are made by the same rules; in words, what was changed.
    pub(super) fn admit(
        &self,
        files: impl IntoIterator<Item = String>,
        recipient: &AgeRecipient,
    ) -> Result<Vec<String>, TreasuryError> {
        let reader = reader(recipient)?;
        let mut notes = Vec::new();
        for file in files {
            let sops = self.read(&file)?;
            // The rules first: a file that is encrypted anew by them later must not lose the reader again.
            if let Some(text) = self.rules()? {
                let changed = add_recipient(&text, &file, &reader);
                self.write_rules(&text, &changed.map_err(|error| refused(&error, error.hint()))?)?;
            }
            if sops.recipients().iter().any(|known| known.is_same(&reader)) {
                continue;
            }
            let mut wanted: Vec<Reader> = sops.recipients().iter().cloned().collect();
            wanted.push(reader.clone());
            let text = sops.rewrap(self.vault.keyring(), &wanted);
            self.write(&file, &text.map_err(|error| refused(&error, error.hint()))?)?;
            notes.push(format!("`{file}` can be read by it now"));
        }
        Ok(notes)
    }

    /// Takes one off every file; in words, what was changed, and which values it knew.
    pub(super) fn dismiss(&self, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        let reader = reader(recipient)?;
        let mut notes = Vec::new();
        if let Some(text) = self.rules()? {
            let changed = remove_recipient(&text, &reader);
            self.write_rules(&text, &changed.map_err(|error| refused(&error, error.hint()))?)?;
        }
        let failed = |error: orch_secrets::VaultError| refused(&error, &error.hint());
        for file in self.vault.files().map_err(failed)? {
            // What is no sops file is for nobody.
            let Ok(sops) = self.read(&file) else { continue };
            let (before, wanted): (Vec<Reader>, Vec<Reader>) =
                sops.recipients().iter().cloned().partition(|known| known.is_same(&reader));
            if before.is_empty() {
                continue;
            }
            let text = sops.renew(self.vault.keyring(), &wanted);
            self.write(&file, &text.map_err(|error| refused(&error, error.hint()))?)?;
            let values: Vec<String> = sops.paths().iter().map(ToString::to_string).collect();
            let values =
                if sops.format() == Format::Binary { "its content".into() } else { values.join(", ") };
            notes.push(format!("`{file}` has a new key; the node could read, so change: {values}"));
        }
        Ok(notes)
    }

    /// Puts a value that orch made where a mention leads, unless there is one.
    pub(super) fn put(&self, mention: &SecretRef, value: &Secret) -> Result<(), TreasuryError> {
        let Ok(Reference::File { file, path }) = Reference::of(mention) else {
            let what = format!("`{mention}` does not say which file it is to be made in");
            return Err(TreasuryError { what, hint: "mention it as `secret:<file>#<path>`".into() });
        };
        let full = self.vault.root().join(&file);
        let text = if full.try_exists().unwrap_or(true) {
            let sops = self.read(&file)?;
            sops.set(self.vault.keyring(), &path, value)
        } else {
            let rules = self.rules()?.unwrap_or_default();
            let rules = Rules::parse(&rules).map_err(|error| refused(&error, error.hint()))?;
            let policy = rules.policy(&file).map_err(|error| refused(&error, error.hint()))?;
            let format = Format::of(&file);
            let empty = encrypt(&file, format, only(format, &path, value)?.expose(), policy);
            if let Some(folder) = full.parent() {
                fs::create_dir_all(folder).map_err(|error| unwritten(&file, &error))?;
            }
            empty
        };
        self.write(&file, &text.map_err(|error| refused(&error, error.hint()))?)
    }

    /// A file as it is now: another process may have changed it since the run began.
    fn read(&self, file: &str) -> Result<SopsFile, TreasuryError> {
        let unread = |error: &io::Error| TreasuryError {
            what: format!("`{file}` cannot be read: {error}"),
            hint: "see whether it is there and yours to read".into(),
        };
        let text = fs::read(self.vault.root().join(file)).map_err(|error| unread(&error))?;
        SopsFile::parse(file, &text).map_err(|error| refused(&error, error.hint()))
    }

    /// The rules, where the site has any.
    fn rules(&self) -> Result<Option<String>, TreasuryError> {
        match fs::read_to_string(self.vault.root().join(RULES)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let what = format!("`{RULES}` cannot be read: {error}");
                Err(TreasuryError { what, hint: "see whether it is yours to read".into() })
            }
        }
    }

    fn write_rules(&self, before: &str, after: &str) -> Result<(), TreasuryError> {
        if before == after { Ok(()) } else { self.write(RULES, after.as_bytes()) }
    }

    fn write(&self, file: &str, text: &[u8]) -> Result<(), TreasuryError> {
        replace(&self.vault.root().join(file), text).map_err(|error| unwritten(file, &error))
    }
}

/// A file of one format that holds one value. Nothing else is made here than what orch makes itself.
fn only(format: Format, path: &KeyPath, value: &Secret) -> Result<Secret, TreasuryError> {
    let key = |step: &Step| match step {
        Step::Key(key) => serde_json::to_string(key).ok(),
        Step::Index(_) => None,
    };
    let keys: Option<Vec<String>> = path.steps().iter().map(key).collect();
    // Nothing in it needs an escape, so it is its own text.
    let is_plain = value.expose().iter().all(u8::is_ascii_alphanumeric);
    match (format, keys.as_deref()) {
        (Format::Binary, Some([])) => Ok(value.clone()),
        (Format::Yaml | Format::Json, Some(keys @ [_, ..])) if is_plain => {
            let (before, after) =
                (format!("{{{}:\"", keys.join(":{")), format!("\"{}", "}".repeat(keys.len())));
            // As much room as is needed: a buffer that grew would leave a copy behind that is not wiped.
            let mut text = Vec::with_capacity(before.len() + value.len() + after.len());
            text.extend_from_slice(before.as_bytes());
            text.extend_from_slice(value.expose());
            text.extend_from_slice(after.as_bytes());
            Ok(Secret::new(text))
        }
        _ => Err(TreasuryError {
            what: "a new file of this kind is not made here".into(),
            hint: "make it with `orch secrets edit`".into(),
        }),
    }
}

fn reader(recipient: &AgeRecipient) -> Result<Reader, TreasuryError> {
    recipient.as_str().parse().map_err(|_| TreasuryError {
        what: format!("`{recipient}` is not an age recipient"),
        hint: "`destroy` and `create` give the node new keys".into(),
    })
}

fn refused(error: &dyn std::error::Error, hint: &str) -> TreasuryError {
    let causes = std::iter::successors(error.source(), |error| error.source());
    let what = causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"));
    TreasuryError { what, hint: hint.to_owned() }
}

fn unwritten(file: &str, error: &io::Error) -> TreasuryError {
    TreasuryError {
        what: format!("`{file}` cannot be written: {error}"),
        hint: "see whether it is yours to write and there is room".into(),
    }
}

fn lock_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "somebody else has the lock"));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    }
}

/// Writes a whole new file in place of the old one, with its permission bits. A link stays, and what it leads to is replaced.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let path: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mode = fs::metadata(&path).map_or(0o644, |about| about.mode() & 0o777);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let draft = path.with_file_name(format!(".{name}.orch-new"));
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&draft, &path)
}
