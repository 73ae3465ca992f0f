//! Opening a file: the data key, every value, and the MAC over all of them.

use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use super::cipher::{self, Closed, DataKey};
use super::comments::Comments;
use super::error::SopsError;
use super::node::{Data, Entry, Value};
use super::opened::Opened;
use super::select::Selector;
use super::{Format, SopsFile, shamir};
use crate::Secret;
use crate::keyring::{Keyring, Unwrapped};
use crate::path::{KeyPath, Step};
use crate::reader::Reader;

/// SHA-256 of `sops`: what a MAC begins with that leaves out values in clear.
const ENCRYPTED_ONLY: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// How numbers of JSON in clear were read by who wrote the MAC.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    AsWritten,
    /// sops up to 3.13.1.
    Floats,
}

impl SopsFile {
    /// Opens every value, and verifies that they are the ones that were written.
    pub fn open(&self, keyring: &Keyring) -> Result<Opened, SopsError> {
        let key = self.data_key(keyring)?;
        self.open_with(key)
    }

    pub(super) fn open_with(&self, key: DataKey) -> Result<Opened, SopsError> {
        let selector = Selector::new(&self.file, self.metadata.selection.rule.as_ref())?;
        if selector.is_about_comments() && (self.format == Format::Ini || self.has_aliases) {
            let what =
                "comments say which of its values are encrypted, and what they stand before cannot be told";
            return Err(self.left_to_sops(what, "use `encrypted_regex` in `.sops.yaml`, which looks at keys"));
        }
        let meant = self.meant_mac(&key)?;
        let mut ways = vec![Numbers::AsWritten];
        if matches!(self.format, Format::Json | Format::Binary) {
            ways.push(Numbers::Floats);
        }
        for numbers in ways {
            let mut walk = Walk::new(self, &key, &selector, numbers);
            let mut roots = Vec::with_capacity(self.roots.len());
            for (at, root) in self.roots.iter().enumerate() {
                let before = at.checked_sub(1).and_then(|before| self.places[before].as_ref());
                let from = before.map_or(0, |metadata| self.end_of(metadata));
                roots.push(walk.value(root, &KeyPath::default(), from)?);
            }
            if Secret::from(walk.mac.finish()) == meant {
                return Ok(Opened { file: self.file.clone(), format: self.format, key, roots });
            }
        }
        Err(SopsError::MacMismatch { file: self.file.clone() })
    }

    fn meant_mac(&self, key: &DataKey) -> Result<Secret, SopsError> {
        let mismatch = || SopsError::MacMismatch { file: self.file.clone() };
        match cipher::open(&self.metadata.mac, key, &self.metadata.last_modified) {
            Ok(Data::Text(mac)) if mac.len() == 128 => Ok(mac),
            _ => Err(mismatch()),
        }
    }

    /// The key that the values are encrypted with.
    pub(super) fn data_key(&self, keyring: &Keyring) -> Result<DataKey, SopsError> {
        let mut shares = Vec::new();
        let mut damaged = None;
        for group in &self.metadata.groups {
            for wrapped in group {
                match keyring.unwrap(&wrapped.reader, &wrapped.enc) {
                    Unwrapped::Opened(share) => {
                        shares.push(share);
                        break;
                    }
                    Unwrapped::Damaged => damaged = damaged.or(Some(&wrapped.reader)),
                    Unwrapped::NotOurs => {}
                }
            }
        }
        let needed = self.needed();
        if shares.len() < needed {
            return Err(self.closed(keyring, damaged, shares.len(), needed));
        }
        let key = if self.metadata.is_shared() { shamir::combine(&shares) } else { shares.pop() };
        let key = key.and_then(|key| <[u8; 32]>::try_from(key.as_slice()).ok().map(Zeroizing::new));
        key.ok_or(SopsError::BadMetadata {
            file: self.file.clone(),
            what: "what is wrapped in it is not a key",
        })
    }

    fn closed(&self, keyring: &Keyring, damaged: Option<&Reader>, opened: usize, needed: usize) -> SopsError {
        let (file, tried) = (self.file.clone(), keyring.notes().to_vec());
        match damaged {
            Some(reader) => SopsError::WrongKey { file, recipient: reader.to_string() },
            None if self.metadata.is_shared() && opened > 0 => {
                SopsError::TooFewGroups { file, opened, needed, tried }
            }
            None => {
                let recipients = self.recipients().iter().cloned().collect();
                SopsError::NoIdentity { file, recipients, tried }
            }
        }
    }
}

/// Where a value stands, as sops binds it: keys only, with a colon behind each, and one for the root too.
pub(super) fn place(path: &KeyPath) -> String {
    path.keys().collect::<Vec<_>>().join(":") + ":"
}

/// The sum over all values, in their order.
pub(super) struct MacOfValues {
    hash: Sha512,
    encrypted_only: bool,
}

impl MacOfValues {
    pub(super) fn new(encrypted_only: bool) -> Self {
        let mut hash = Sha512::new();
        if encrypted_only {
            hash.update(ENCRYPTED_ONLY);
        }
        Self { hash, encrypted_only }
    }

    pub(super) fn add(&mut self, value: &Value, is_encrypted: bool) {
        if (is_encrypted || !self.encrypted_only)
            && !value.is_comment()
            && let Some(bytes) = value.plain_bytes()
        {
            self.hash.update(bytes.expose());
        }
    }

    pub(super) fn finish(self) -> String {
        let mut text = String::with_capacity(128);
        for byte in self.hash.finalize() {
            text.push_str(&format!("{byte:02X}"));
        }
        text
    }
}

struct Walk<'a> {
    file: &'a SopsFile,
    key: &'a DataKey,
    selector: &'a Selector,
    numbers: Numbers,
    mac: MacOfValues,
    comments: Comments<'a>,
    /// How many of the maps and lists around a value have a comment before them that is looked for.
    matched: usize,
}

impl<'a> Walk<'a> {
    fn new(file: &'a SopsFile, key: &'a DataKey, selector: &'a Selector, numbers: Numbers) -> Self {
        let mac = MacOfValues::new(file.metadata.selection.mac_only_encrypted);
        Self { file, key, selector, numbers, mac, comments: Comments::of(file), matched: 0 }
    }

    /// Opens a value. What stands before it ends at `from`.
    fn value(&mut self, value: &Value, path: &KeyPath, from: usize) -> Result<Value, SopsError> {
        let mut from = from;
        let data = match &value.data {
            Data::Null => Data::Null,
            Data::Map(entries) => {
                let mut opened: Vec<Entry> = Vec::with_capacity(entries.len());
                for entry in entries {
                    opened.push(self.entry(entry, path, from)?);
                    from = self.file.end_of(entry);
                }
                Data::Map(opened)
            }
            Data::List(items) => {
                let mut opened: Vec<Value> = Vec::with_capacity(items.len());
                let mut index = 0;
                for item in items {
                    let path = path.with(Step::Index(index));
                    let matched = self.matched;
                    if self.selector.is_about_comments() {
                        self.matched +=
                            usize::from(self.selector.is_matched(&self.comments.of_item(from, item)));
                    }
                    let value = self.value(item, &path, item.span.start)?;
                    self.matched = matched;
                    index += usize::from(!value.is_comment());
                    opened.push(value);
                    from = self.file.end_of_value(item);
                }
                Data::List(opened)
            }
            _ => return self.leaf(value, path),
        };
        Ok(Value::new(value.span.clone(), data))
    }

    fn entry(&mut self, entry: &Entry, path: &KeyPath, from: usize) -> Result<Entry, SopsError> {
        let matched = self.matched;
        if self.selector.is_about_comments() {
            self.matched += usize::from(self.selector.is_matched(&self.comments.of_entry(from, entry)));
        }
        let path = path.with(Step::Key(entry.key.clone()));
        let value = self.value(&entry.value, &path, entry.key_span.end)?;
        self.matched = matched;
        Ok(Entry { key: entry.key.clone(), key_span: entry.key_span.clone(), value })
    }

    fn leaf(&mut self, value: &Value, path: &KeyPath) -> Result<Value, SopsError> {
        let is_encrypted = self.selector.selects_below(path.keys(), self.matched > 0);
        let data = if is_encrypted { self.decrypt(value, path)? } else { self.in_clear(value) };
        let value = Value::new(value.span.clone(), data);
        self.mac.add(&value, is_encrypted);
        Ok(value)
    }

    fn decrypt(&self, value: &Value, path: &KeyPath) -> Result<Data, SopsError> {
        let (file, path_of) = (self.file.file.clone(), path.clone());
        let Data::Text(_) = &value.data else {
            return Err(SopsError::NotEncrypted { file, path: path_of });
        };
        let text = value.as_text().unwrap_or("not UTF-8, and so not encrypted");
        cipher::open(text, self.key, &place(path)).map_err(|closed| match closed {
            Closed::NotEncrypted => SopsError::NotEncrypted { file, path: path_of },
            Closed::Wrong => SopsError::TamperedValue { file, path: path_of },
        })
    }

    #[allow(clippy::cast_precision_loss, reason = "the loss is what sops did")]
    fn in_clear(&self, value: &Value) -> Data {
        match &value.data {
            Data::Int(number) if self.numbers == Numbers::Floats => match *number {
                // Only a float knows this sign.
                0 if self.file.text.get(value.span.start) == Some(&b'-') => Data::Float(-0.0),
                number => Data::Float(number as f64),
            },
            data => data.clone(),
        }
    }
}
