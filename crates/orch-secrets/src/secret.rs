//! Bytes that are wiped when dropped and cannot be shown.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes that are wiped when dropped and cannot be shown.
///
/// There is no `Display` and no `Serialize`: [`expose`](Self::expose) is the one way to the bytes, and easy to search for.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes themselves.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes())
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Takes the same time wherever two secrets of one length differ.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::from(String::from("hunter2"));
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret(..) Some(Secret(..))");
        assert_eq!(secret.expose(), b"hunter2");
        assert_eq!((secret.len(), secret.is_empty()), (7, false));
    }

    #[test]
    fn two_secrets_are_equal_where_their_bytes_are() {
        let secret = |text: &str| Secret::from(text.to_owned());
        assert_eq!(secret("a"), secret("a"));
        assert_ne!(secret("a"), secret("b"));
        assert_ne!(secret("a"), secret("ab"));
    }
}
