//! The keys that sign tokens. They cannot be printed.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::word::KeyName;

const LENGTH: usize = 32;

/// A key that signs tokens. Its bytes are wiped when it goes.
#[derive(Clone)]
pub struct SigningKey {
    id: KeyName,
    bytes: Zeroizing<[u8; LENGTH]>,
}

impl SigningKey {
    /// A key of this id.
    pub fn new(id: KeyName, bytes: Zeroizing<[u8; LENGTH]>) -> Self {
        Self { id, bytes }
    }

    /// Reads a key: 64 hexadecimal digits, with white space around them. What is wrong is told without showing it.
    pub fn parse(id: KeyName, text: &str) -> Result<Self, String> {
        let text = text.trim();
        let refused = || "a signing key is 64 hexadecimal digits".to_owned();
        if text.len() != 2 * LENGTH || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refused());
        }
        let mut bytes = Zeroizing::new([0; LENGTH]);
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[place * 2..place * 2 + 2], 16).map_err(|_| refused())?;
        }
        Ok(Self { id, bytes })
    }

    /// Which one it is.
    pub fn id(&self) -> &KeyName {
        &self.id
    }

    /// The key as text, for the file that keeps it.
    pub fn expose(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(2 * LENGTH));
        for byte in self.bytes.iter() {
            use fmt::Write as _;
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        }
        text
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; LENGTH] {
        self.mac(bytes).finalize().into_bytes().into()
    }

    /// Compares in a time that does not depend on what differs.
    pub(super) fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        self.mac(bytes).verify_slice(signature).is_ok()
    }

    fn mac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&*self.bytes).expect("HMAC takes keys of any length");
        mac.chain_update(bytes)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, ..)", self.id)
    }
}

/// The keys whose tokens are believed; the last by its id signs new ones, so that a key is replaced by adding one, and
/// taken away once nobody has a token of it any more.
#[derive(Debug, Clone, Default)]
pub struct Keyring(BTreeMap<KeyName, SigningKey>);

impl Keyring {
    /// The key that signs new tokens.
    pub fn current(&self) -> Option<&SigningKey> {
        self.0.values().next_back()
    }

    /// Whether there is no key at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of this id.
    pub fn named(&self, id: &KeyName) -> Option<&SigningKey> {
        self.0.get(id)
    }

    /// Every key.
    pub fn all(&self) -> impl Iterator<Item = &SigningKey> {
        self.0.values()
    }
}

impl FromIterator<SigningKey> for Keyring {
    fn from_iter<I: IntoIterator<Item = SigningKey>>(keys: I) -> Self {
        Self(keys.into_iter().map(|key| (key.id.clone(), key)).collect())
    }
}
