//! A file that was opened: its values, by their paths.

use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::Format;
use super::cipher::DataKey;
use super::error::SopsError;
use super::node::{Data, Value};
use crate::Secret;
use crate::path::KeyPath;

/// A file, opened and verified.
pub struct Opened {
    pub(super) file: String,
    pub(super) format: Format,
    pub(super) key: DataKey,
    pub(super) roots: Vec<Value>,
}

impl Opened {
    /// What is at a path, in the first document that has something there. The root of a binary file is its one value.
    fn get(&self, path: &KeyPath) -> Option<&Value> {
        if self.format == Format::Binary && path.is_root() {
            return self.roots.first()?.field("data");
        }
        self.roots.iter().find_map(|root| root.at(path))
    }

    /// The bytes of the one value at a path.
    pub fn secret(&self, path: &KeyPath) -> Result<Secret, SopsError> {
        let (file, at) = (self.file.clone(), path.clone());
        let value = self.get(path).ok_or(SopsError::NoSuchValue { file: file.clone(), path: at.clone() })?;
        let is_json = matches!(self.format, Format::Json | Format::Binary);
        let secret = match value.data {
            Data::Float(number) if is_json => super::json::float(number).map(Secret::from),
            _ => value.secret(),
        };
        secret.ok_or(SopsError::NotOneValue {
            file,
            path: at,
            what: match value.data {
                Data::Null => "null",
                Data::List(_) => "a list",
                _ => "a map",
            },
        })
    }

    /// Something that is the same for the same value, and says nothing to who cannot open the file. Values of different
    /// contexts, paths or data keys cannot be compared by it.
    pub fn digest(&self, path: &KeyPath, context: &str) -> Option<[u8; 16]> {
        let value = self.get(path)?.plain_bytes()?;
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(None, &*self.key).expand(b"orch secret digest v1", &mut *key).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&*key).ok()?;
        for part in [context, &path.to_string()] {
            mac.update(&u64::try_from(part.len()).ok()?.to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.update(value.expose());
        mac.finalize().into_bytes().first_chunk().copied()
    }
}

/// Says what it is and nothing of what it holds.
impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opened({}, ..)", self.file)
    }
}
