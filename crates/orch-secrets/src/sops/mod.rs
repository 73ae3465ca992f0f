//! sops files: read without a key, opened with one, written anew as text.
//!
//! What sops 3.11 writes is what is read here, byte for byte; `tests/oracle/` compares the two. The MAC is always
//! verified. What a file leaves in clear is authenticated by the MAC only, and its keys by nothing: that a file is the
//! site's own must come from version control.

mod cipher;
mod comments;
mod document;
mod dotenv;
mod edit;
mod emit;
mod encrypt;
mod error;
mod ini;
mod json;
mod metadata;
mod node;
mod open;
mod opened;
mod pattern;
mod plain;
mod renew;
mod rewrap;
mod scalar;
mod select;
mod set;
mod shamir;
mod yaml;

use std::path::Path;

pub use encrypt::{Policy, encrypt};
pub use error::SopsError;
pub use opened::Opened;
pub use select::{Rule, Selection};

pub(crate) use cipher::new_key as random_key;
pub(crate) use edit::Edits;
pub(crate) use encrypt::same;
pub(crate) use metadata::rule as selection_rule;
pub(crate) use node::{Data, Entry, MAX_BYTES, Value};
pub(crate) use pattern::compile;

use crate::path::{KeyPath, Step};
use crate::reader::Reader;
use document::{Comment, Documents};
use metadata::Metadata;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `.yaml`, `.yml`
    Yaml,
    /// `.json`
    Json,
    /// `.env`
    Dotenv,
    /// `.ini`
    Ini,
    /// Anything else: the whole file is one value.
    Binary,
}

impl Format {
    /// The format that sops takes a file to have, by its name.
    pub fn of(path: impl AsRef<Path>) -> Self {
        let name = path.as_ref().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("yaml" | "yml") => Self::Yaml,
            Some("json") => Self::Json,
            Some("env") => Self::Dotenv,
            Some("ini") => Self::Ini,
            _ => Self::Binary,
        }
    }
}

/// A sops file, read and not opened.
pub struct SopsFile {
    file: String,
    format: Format,
    text: Vec<u8>,
    /// One map for each document, without metadata.
    roots: Vec<Value>,
    /// The metadata of each document, where they stand in it.
    places: Vec<Option<Entry>>,
    metadata: Metadata,
    comments: Vec<Comment>,
    has_aliases: bool,
}

/// Who can open a file: groups that each hold a share of the key, or the whole where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipients {
    /// Each group.
    pub groups: Vec<Vec<Reader>>,
    /// How many groups it takes to open the file.
    pub threshold: usize,
}

impl Recipients {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Reader> {
        self.groups.iter().flatten()
    }
}

impl SopsFile {
    /// Reads a file. Its name says how it is written, and stands in messages.
    pub fn parse(path: &str, text: &[u8]) -> Result<Self, SopsError> {
        Self::parse_as(path, Format::of(path), text)
    }

    /// Reads a file that is written otherwise than its name says.
    pub fn parse_as(path: &str, format: Format, text: &[u8]) -> Result<Self, SopsError> {
        let documents = read(path, format, text).map_err(|error| cut_short(error, format, text))?;
        let Documents { mut roots, comments, has_aliases } = documents;
        let places: Vec<Option<Entry>> = roots.iter_mut().map(|root| take_metadata(root, format)).collect();
        let Some(place) = places.iter().flatten().next() else {
            let is_encrypted = text.windows(15).any(|window| window == b"ENC[AES256_GCM,");
            let file = path.to_owned();
            return Err(if is_encrypted {
                SopsError::Truncated { file }
            } else {
                SopsError::NotSops { file }
            });
        };
        let metadata = Metadata::read(path, &place.value)?;
        let (file, text) = (path.to_owned(), text.to_vec());
        Ok(Self { file, format, text, roots, places, metadata, comments, has_aliases })
    }

    /// Its name, as it was given.
    pub fn path(&self) -> &str {
        &self.file
    }

    /// How it is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Every value of it, encrypted or not, by its path. A value of a list that is an encrypted comment is none.
    pub fn paths(&self) -> Vec<KeyPath> {
        let mut paths = Vec::new();
        for root in &self.roots {
            leaves(root, &KeyPath::default(), &mut paths);
        }
        paths
    }

    /// Who can open it.
    pub fn recipients(&self) -> Recipients {
        let readers = |group: &Vec<metadata::Wrapped>| group.iter().map(|one| one.reader.clone()).collect();
        let groups: Vec<Vec<Reader>> = self.metadata.groups.iter().map(readers).collect();
        let threshold = self.needed();
        Recipients { groups, threshold }
    }

    fn needed(&self) -> usize {
        match self.metadata.threshold {
            _ if !self.metadata.is_shared() => 1,
            0 => self.metadata.groups.len(),
            threshold => threshold,
        }
    }
}

/// Says what it is and nothing of what it holds.
impl std::fmt::Debug for SopsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SopsFile({}, {:?})", self.file, self.format)
    }
}

/// Reads YAML as sops does, for its configuration. The error is the place and what is wrong there.
pub(crate) fn read_yaml(file: &str, text: &str) -> Result<Value, SopsError> {
    let documents = read(file, Format::Yaml, text.as_bytes())?;
    Ok(documents.roots.into_iter().next().unwrap_or(Value::new(0..0, Data::Map(Vec::new()))))
}

/// Reads a text of a format, encrypted or not.
fn read(file: &str, format: Format, text: &[u8]) -> Result<Documents, SopsError> {
    if text.len() > MAX_BYTES {
        return Err(SopsError::TooLarge { file: file.to_owned(), what: "it has too many bytes" });
    }
    let utf8 = || {
        let text = text.strip_prefix(b"\xef\xbb\xbf").filter(|_| format == Format::Ini).unwrap_or(text);
        std::str::from_utf8(text)
            .map_err(|error| document::Fault::at(error.valid_up_to(), "this is not UTF-8"))
    };
    let documents = match format {
        Format::Yaml => utf8().and_then(yaml::read),
        Format::Json | Format::Binary => utf8().and_then(json::read).map(Documents::one),
        Format::Dotenv => dotenv::read(text),
        Format::Ini => utf8().and_then(ini::read),
    };
    documents.map_err(|fault| fault.of(file, text))
}

/// JSON that begins and does not end was cut. A file of any other kind that is not JSON was never encrypted.
fn cut_short(error: SopsError, format: Format, text: &[u8]) -> SopsError {
    let SopsError::Malformed { file, .. } = &error else { return error };
    let begins = text.trim_ascii_start().starts_with(b"{");
    let ends = text.trim_ascii_end().ends_with(b"}");
    match format {
        Format::Json | Format::Binary if begins && !ends => SopsError::Truncated { file: file.clone() },
        Format::Binary if !begins => SopsError::NotSops { file: file.clone() },
        _ => error,
    }
}

/// Takes the metadata out of a document.
fn take_metadata(root: &mut Value, format: Format) -> Option<Entry> {
    let Data::Map(entries) = &mut root.data else { return None };
    if format == Format::Dotenv {
        let (own, rest): (Vec<_>, Vec<_>) =
            std::mem::take(entries).into_iter().partition(|entry| entry.key.starts_with(dotenv::PREFIX));
        *entries = rest;
        let value =
            metadata::unflatten(own.iter().map(|entry| (&entry.key[dotenv::PREFIX.len()..], &entry.value)));
        return (!own.is_empty()).then(|| Entry { key: String::from("sops"), key_span: 0..0, value });
    }
    let at = entries.iter().position(|entry| entry.key == "sops")?;
    let mut entry = entries.remove(at);
    if format == Format::Ini {
        let fields = entry.value.entries().iter().map(|entry| (entry.key.as_str(), &entry.value));
        entry.value = metadata::unflatten(fields);
    }
    matches!(entry.value.data, Data::Map(_)).then_some(entry)
}

fn leaves(value: &Value, path: &KeyPath, into: &mut Vec<KeyPath>) {
    match &value.data {
        Data::Null => {}
        Data::Map(entries) => {
            for entry in entries {
                leaves(&entry.value, &path.with(Step::Key(entry.key.clone())), into);
            }
        }
        Data::List(items) => {
            let items = items.iter().filter(|item| !item.as_text().is_some_and(cipher::is_comment));
            for (index, item) in items.enumerate() {
                leaves(item, &path.with(Step::Index(index)), into);
            }
        }
        _ => into.push(path.clone()),
    }
}
