//! Changes to the sops files of a site: whom they are for, and values that orch makes itself. One process at a time, each
//! file whole or as it was.

use std::fs::{self, File};
use std::io;

use orch_model::{AgeRecipient, SecretRef};
use orch_secrets::rules::{FILE as RULES, Rules, add_recipient, remove_recipient};
use orch_secrets::sops::encrypt;
use orch_secrets::{
    FOLDER, Format, KeyPath, Reader, Reference, Secret, SopsFile, Step, Vault, VaultError, seal,
};

use super::TreasuryError;
use super::drafts::{lock, replace};

/// Changes the sops files of a site.
pub(super) struct Keeper<'k> {
    vault: &'k Vault,
    /// Held by whoever changes something.
    _lock: Option<File>,
}

impl<'k> Keeper<'k> {
    /// Begins to change files, once nobody else does. The lock is on the files' own folder, so that it holds between whoever
    /// works on this site, wherever they keep their state.
    pub(super) fn begin(vault: &'k Vault) -> Result<Self, TreasuryError> {
        let folder = vault.root().join(FOLDER);
        let folder = if folder.is_dir() { folder } else { vault.root().to_owned() };
        let locked = lock(vault, &folder).map_err(|error| {
            let what = format!("the sops files cannot be changed: `{}`: {error}", folder.display());
            TreasuryError { what, hint: "see whether another `orch` changes them, and run again".into() }
        })?;
        Ok(Self { vault, _lock: Some(locked) })
    }

    /// Looks, and changes nothing: nobody is waited for.
    pub(super) const fn looking(vault: &'k Vault) -> Self {
        Self { vault, _lock: None }
    }

    /// Lets one read these files; in words, what was changed.
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

    /// Takes one off every file; in words, what was changed, and which values it knew. That is told also where it could not be
    /// done: what a node has read stays read.
    pub(super) fn dismiss(&self, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        let (reader, files) = (reader(recipient)?, self.read_by(recipient)?);
        let known: Vec<String> = files.iter().map(known_values).collect();
        let told = |error: TreasuryError| TreasuryError {
            what: if known.is_empty() {
                error.what
            } else {
                format!("{}; the node could read, so change: {}", error.what, known.join("; "))
            },
            hint: format!(
                "{}; or take `{recipient}` off by hand, with `sops updatekeys` and `sops rotate`, and run again",
                error.hint
            ),
        };
        self.take_off(&reader, &files).map_err(told)?;
        let note =
            |values: &String| format!("it has a new key, and the node could read, so change, {values}");
        Ok(known.iter().map(note).collect())
    }

    /// Everything is made before the first of it is written: what cannot be done changes nothing.
    fn take_off(&self, reader: &Reader, files: &[SopsFile]) -> Result<(), TreasuryError> {
        let rules = self.rules()?.filter(|text| text.contains(reader.as_str()));
        let rules = rules.map(|text| remove_recipient(&text, reader)).transpose();
        let rules = rules.map_err(|error| refused(&error, error.hint()))?;
        let renew = |sops: &SopsFile| {
            let recipients = sops.recipients();
            let wanted: Vec<Reader> =
                recipients.iter().filter(|known| !known.is_same(reader)).cloned().collect();
            sops.renew(self.vault.keyring(), &wanted).map_err(|error| refused(&error, error.hint()))
        };
        let texts: Vec<Vec<u8>> = files.iter().map(renew).collect::<Result<_, _>>()?;
        if let Some(text) = rules {
            self.write(RULES, text.as_bytes())?;
        }
        files.iter().zip(&texts).try_for_each(|(sops, text)| self.write(sops.path(), text))
    }

    /// The files that a recipient can read. One that does not even name it is not looked into: what is wrong with it is no
    /// reason to keep a node.
    fn read_by(&self, recipient: &AgeRecipient) -> Result<Vec<SopsFile>, TreasuryError> {
        let failed = |error: VaultError| refused(&error, &error.hint());
        let mut files = Vec::new();
        for file in self.vault.files().map_err(failed)? {
            let Ok(bytes) = self.vault.read(&file) else { continue };
            let name = recipient.as_str().as_bytes();
            if bytes.windows(name.len()).any(|window| window == name) {
                files.push(self.read(&file)?);
            }
        }
        Ok(files)
    }

    /// Whether somebody can read a file of the site, or is named by its rules, or is who works here.
    pub(super) fn is_known(&self, recipient: &AgeRecipient) -> Result<bool, TreasuryError> {
        let reader = reader(recipient)?;
        let is_named = self.rules()?.is_some_and(|text| text.contains(recipient.as_str()));
        Ok(is_named || self.vault.keyring().is_for(&reader) || !self.read_by(recipient)?.is_empty())
    }

    /// Says why somebody could not be let in to a file, or not be shown out again. Nothing is written.
    pub(super) fn rehearse(&self, file: &str) -> Result<(), TreasuryError> {
        let anybody = Reader::from(seal::Identity::generate().recipient());
        if let Some(text) = self.rules()? {
            add_recipient(&text, file, &anybody).map_err(|error| refused(&error, error.hint()))?;
        }
        let sops = self.read(file)?;
        let mut wanted: Vec<Reader> = sops.recipients().iter().cloned().collect();
        sops.renew(self.vault.keyring(), &wanted).map_err(|error| refused(&error, error.hint()))?;
        wanted.push(anybody);
        sops.rewrap(self.vault.keyring(), &wanted).map_err(|error| refused(&error, error.hint()))?;
        Ok(())
    }

    /// Puts a value that orch made where a mention leads, unless there is one by now. Whether it was put there.
    pub(super) fn put(&self, mention: &SecretRef, value: &Secret) -> Result<bool, TreasuryError> {
        let Ok(Reference::File { file, path }) = Reference::of(mention) else {
            let what = format!("`{mention}` does not say which file it is to be made in");
            return Err(TreasuryError { what, hint: "mention it as `secret:<file>#<path>`".into() });
        };
        let full = self.vault.root().join(&file);
        let text = if full.try_exists().unwrap_or(true) {
            let sops = self.read(&file)?;
            if sops.paths().contains(&path) {
                return Ok(false);
            }
            sops.set(self.vault.keyring(), &path, value)
        } else {
            let rules = self.rules()?.unwrap_or_default();
            let rules = Rules::parse(&rules).map_err(|error| refused(&error, error.hint()))?;
            let policy = rules.policy(&file).map_err(|error| refused(&error, error.hint()))?;
            let format = Format::of(&file);
            let text = encrypt(&file, format, only(format, &path, value)?.expose(), policy);
            if let Some(folder) = full.parent() {
                fs::create_dir_all(folder).map_err(|error| unwritten(&file, &error))?;
            }
            text
        };
        self.write(&file, &text.map_err(|error| refused(&error, error.hint()))?)?;
        Ok(true)
    }

    /// A file as it is now: another process may have changed it since the run began.
    fn read(&self, file: &str) -> Result<SopsFile, TreasuryError> {
        self.vault.parse_now(file).map_err(|error| refused(&error, &error.hint()))
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

/// The values of a file that whoever could read it may have kept.
fn known_values(sops: &SopsFile) -> String {
    let values: Vec<String> = sops.paths().iter().map(ToString::to_string).collect();
    let values = if sops.format() == Format::Binary { "its content".into() } else { values.join(", ") };
    format!("`{}`: {values}", sops.path())
}
