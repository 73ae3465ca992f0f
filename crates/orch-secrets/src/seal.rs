//! Bytes sealed with age for who holds an identity: what a node keeps for itself.

use std::fmt;
use std::io::{Read, Write};
use std::str::FromStr;

use age::secrecy::ExposeSecret;
use age::{DecryptError, Decryptor, Encryptor, x25519};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::Secret;

/// Something cannot be sealed or opened.
#[derive(Debug, Error)]
pub enum SealError {
    /// The text is no identity. It is not repeated: it may be half of one.
    #[error("this is not an age identity")]
    NotAnIdentity,
    /// The text is no recipient.
    #[error("this is not an age recipient")]
    NotARecipient,
    /// There is nobody to seal for.
    #[error("there is no recipient to seal for")]
    NoRecipient,
    /// Sealing failed.
    #[error("the bytes cannot be sealed")]
    Seal(#[source] age::EncryptError),
    /// The bytes are not an age file, or only a part of one.
    #[error("this is not a whole age file")]
    NotSealed(#[source] DecryptError),
    /// The file is sealed for others.
    #[error("the file is not sealed for this identity")]
    WrongIdentity,
    /// The file was changed after it was sealed, or is cut short.
    #[error("the sealed file was changed or is cut short")]
    Damaged,
}

/// Who can open what is sealed for its [`Recipient`].
#[derive(Clone)]
pub struct Identity(x25519::Identity);

impl Identity {
    /// A new one, from the randomness of the system.
    pub fn generate() -> Self {
        Self(x25519::Identity::generate())
    }

    /// Whom to seal for, so that this identity can open it.
    pub fn recipient(&self) -> Recipient {
        Recipient(self.0.to_public().to_string())
    }

    /// The identity as text, `AGE-SECRET-KEY-1…`, to be kept.
    pub fn to_secret(&self) -> Secret {
        Secret::new(self.0.to_string().expose_secret().as_bytes().to_vec())
    }
}

impl FromStr for Identity {
    type Err = SealError;

    fn from_str(text: &str) -> Result<Self, SealError> {
        text.trim().parse().map(Self).map_err(|_| SealError::NotAnIdentity)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(..)")
    }
}

/// Whom something is sealed for: the public half of an [`Identity`], `age1…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recipient(String);

impl FromStr for Recipient {
    type Err = SealError;

    fn from_str(text: &str) -> Result<Self, SealError> {
        let recipient: x25519::Recipient = text.trim().parse().map_err(|_| SealError::NotARecipient)?;
        // Written anew, so that the same recipient is the same text.
        Ok(Self(recipient.to_string()))
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Seals the bytes as a binary age file that each of the recipients can open.
pub fn seal(recipients: &[Recipient], bytes: &[u8]) -> Result<Vec<u8>, SealError> {
    let keys: Result<Vec<x25519::Recipient>, _> = recipients.iter().map(|one| one.0.parse()).collect();
    let keys = keys.map_err(|_| SealError::NotARecipient)?;
    let encryptor = Encryptor::with_recipients(keys.iter().map(|key| key as &dyn age::Recipient));
    let encryptor = encryptor.map_err(|error| match error {
        age::EncryptError::MissingRecipients => SealError::NoRecipient,
        error => SealError::Seal(error),
    })?;
    let mut sealed = Vec::with_capacity(bytes.len() + 512);
    let write = |sealed: &mut Vec<u8>| {
        let mut writer = encryptor.wrap_output(sealed)?;
        writer.write_all(bytes)?;
        writer.finish().map(|_| ())
    };
    write(&mut sealed).map_err(|error| SealError::Seal(error.into()))?;
    Ok(sealed)
}

/// Opens a binary age file. Nothing of it is handed out before all of it was verified.
pub fn open(identity: &Identity, sealed: &[u8]) -> Result<Secret, SealError> {
    let decryptor = Decryptor::new_buffered(sealed).map_err(SealError::NotSealed)?;
    let mut reader = decryptor.decrypt(std::iter::once(&identity.0 as &dyn age::Identity)).map_err(
        |error| match error {
            DecryptError::NoMatchingKeys => SealError::WrongIdentity,
            DecryptError::InvalidHeader | DecryptError::UnknownFormat => SealError::NotSealed(error),
            _ => SealError::Damaged,
        },
    )?;
    // As much room as there can be plain text: a buffer that grew would leave copies behind that are not wiped.
    let mut plain = Zeroizing::new(Vec::with_capacity(sealed.len() + 32));
    reader.read_to_end(&mut plain).map_err(|_| SealError::Damaged)?;
    Ok(Secret::new(std::mem::take(&mut *plain)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

    use super::*;

    #[test]
    fn what_is_sealed_is_opened_by_each_recipient_and_by_nobody_else() {
        let (one, two, other) = (Identity::generate(), Identity::generate(), Identity::generate());
        let sealed = seal(&[one.recipient(), two.recipient()], b"hunter2").unwrap();
        assert_eq!(open(&one, &sealed).unwrap().expose(), b"hunter2");
        assert_eq!(open(&two, &sealed).unwrap().expose(), b"hunter2");
        assert!(matches!(open(&other, &sealed), Err(SealError::WrongIdentity)));
        assert!(matches!(seal(&[], b"x"), Err(SealError::NoRecipient)));
    }

    #[test]
    fn a_file_that_was_changed_or_cut_short_is_refused() {
        let identity = Identity::generate();
        let sealed = seal(&[identity.recipient()], &[7; 100]).unwrap();
        for at in 0..sealed.len() {
            assert!(open(&identity, &sealed[..at]).is_err(), "cut at {at}");
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&identity, &changed).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn an_identity_is_kept_as_text_and_shown_to_nobody() {
        let identity = Identity::generate();
        let text = String::from_utf8(identity.to_secret().expose().to_vec()).unwrap();
        assert!(text.starts_with("AGE-SECRET-KEY-1"));
        let again: Identity = format!("{text}\n").parse().unwrap();
        assert_eq!(again.recipient(), identity.recipient());
        assert_eq!(format!("{identity:?}"), "Identity(..)");
        let wrong = format!("{}x", &text[..text.len() - 1]).parse::<Identity>().unwrap_err();
        assert!(!format!("{wrong} {wrong:?}").contains(&text[16..30]));
    }

    #[test]
    fn a_recipient_is_the_same_text_everywhere() {
        let recipient = Identity::generate().recipient();
        let shouted = format!(" {}\n", recipient.to_string().to_uppercase());
        for text in [recipient.to_string(), shouted] {
            assert_eq!(text.parse::<Recipient>().unwrap().to_string(), recipient.to_string());
        }
        assert!("age1nonsense".parse::<Recipient>().is_err());
    }
}
