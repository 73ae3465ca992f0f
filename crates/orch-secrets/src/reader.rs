//! Who can read a file: recipients of every kind that sops knows, and those among them that we can encrypt to.

use std::fmt;
use std::str::FromStr;

use age_core::format::{FileKey, Stanza};
use thiserror::Error;

use crate::keyring::ssh::PublicKey;
use crate::seal;

/// A text is no recipient.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("this is neither an age recipient nor a public key of SSH")]
pub struct NotAReader;

/// What kind of recipient one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReaderKind {
    /// `age1…`, X25519.
    Age,
    /// A public key of SSH.
    SshEd25519,
    /// A public key of SSH, which sops can use. We can neither encrypt to it nor open with it: the arithmetic for it that
    /// is to be had in Rust can be timed (RUSTSEC-2023-0071).
    SshRsa,
    /// `age1name1…`: a plugin of age, or a kind that is younger than we are.
    AgePlugin,
    /// The list of the metadata that it stands in: `pgp`, `kms`, `gcp_kms`, `azure_kv`, `hc_vault`.
    Other(&'static str),
}

/// Who can read a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reader {
    kind: ReaderKind,
    text: String,
}

impl Reader {
    /// What kind it is of.
    pub fn kind(&self) -> ReaderKind {
        self.kind
    }

    /// Its text, as it stands in a file.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether we can encrypt to it.
    pub fn is_writable(&self) -> bool {
        matches!(self.kind, ReaderKind::Age | ReaderKind::SshEd25519)
    }

    /// A recipient that is not age's.
    pub(crate) fn other(list: &'static str, text: &str) -> Self {
        Self { kind: ReaderKind::Other(list), text: text.to_owned() }
    }

    /// What stands in a file under `age`, whatever it is.
    pub(crate) fn listed(text: &str) -> Self {
        let fallback = if text.starts_with("ssh-rsa ") { ReaderKind::SshRsa } else { ReaderKind::AgePlugin };
        text.parse().unwrap_or_else(|_| Self { kind: fallback, text: text.to_owned() })
    }

    /// Whether two are the same key: what is said about a public key of SSH behind it does not count.
    pub fn is_same(&self, other: &Self) -> bool {
        self.essence() == other.essence()
    }

    fn essence(&self) -> (ReaderKind, Vec<&str>) {
        (self.kind, self.text.split_whitespace().take(2).collect())
    }

    /// Wraps a key into an armored age file of its own, as sops does it.
    pub(crate) fn wrap(&self, key: &[u8]) -> Option<String> {
        match self.kind {
            ReaderKind::Age => {
                let recipient: age::x25519::Recipient = self.text.parse().ok()?;
                age::encrypt_and_armor(&recipient, key).ok()
            }
            ReaderKind::SshEd25519 => {
                let recipient: PublicKey = self.text.parse().ok()?;
                age::encrypt_and_armor(&SshRecipient(recipient), key).ok()
            }
            _ => None,
        }
    }
}

impl FromStr for Reader {
    type Err = NotAReader;

    fn from_str(text: &str) -> Result<Self, NotAReader> {
        let text = text.trim();
        let of = |kind| Ok(Self { kind, text: text.to_owned() });
        // A line break in the middle of a recipient would become one in a file.
        if text.contains(char::is_control) {
            Err(NotAReader)
        } else if text.parse::<seal::Recipient>().is_ok() {
            of(ReaderKind::Age)
        } else if text.parse::<PublicKey>().is_ok() {
            of(ReaderKind::SshEd25519)
        } else if text.starts_with("ssh-rsa AAAA") {
            of(ReaderKind::SshRsa)
        } else if text.starts_with("age1") && text[4..].contains('1') && !text.contains(' ') {
            of(ReaderKind::AgePlugin)
        } else {
            Err(NotAReader)
        }
    }
}

impl From<seal::Recipient> for Reader {
    fn from(recipient: seal::Recipient) -> Self {
        Self { kind: ReaderKind::Age, text: recipient.to_string() }
    }
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a stranger wrote into a file is shown as one line that drives no terminal.
        self.text.chars().filter(|c| !c.is_control()).take(800).try_for_each(|c| write!(f, "{c}"))
    }
}

/// age's own type for public keys of SSH comes with RSA, so this one is ours.
struct SshRecipient(PublicKey);

impl age::Recipient for SshRecipient {
    fn wrap_file_key(
        &self,
        file_key: &FileKey,
    ) -> Result<(Vec<Stanza>, std::collections::HashSet<String>), age::EncryptError> {
        Ok((vec![self.0.wrap(file_key)], std::collections::HashSet::new()))
    }
}
