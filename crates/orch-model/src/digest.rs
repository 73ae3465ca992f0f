//! The SHA-256 of a value's JSON: how two configurations or plans are known to be the same.

use alloc::string::String;
use core::fmt::{self, Write};
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256, printed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Stands where there is nothing to have a digest of.
    pub const NONE: Self = Self([0; 32]);

    /// The digest of a value's compact JSON. Same value, same bytes, same digest: maps inside must be ordered.
    pub fn of(value: &impl Serialize) -> Self {
        let json = serde_json::to_vec(value).expect("what orch defines can be written as JSON");
        Self::of_bytes(&json)
    }

    /// The digest of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The first eight hexadecimal digits, for names and for people.
    pub fn short(&self) -> String {
        let mut short = String::with_capacity(8);
        for byte in &self.0[..4] {
            write!(short, "{byte:02x}").expect("writing to a string cannot fail");
        }
        short
    }

    /// The first eight bytes as a number, for a stable choice within a range.
    pub fn as_number(&self) -> u64 {
        self.0[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || String::from("a digest is 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(refused());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).map_err(|_| refused())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_digest_is_the_sha256_that_everybody_knows_and_reads_back() {
        let digest = Digest::of_bytes(b"abc");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), known);
        assert_eq!(known.parse(), Ok(digest));
        assert_eq!(digest.short(), "ba7816bf");
        assert!("zz".repeat(32).parse::<Digest>().is_err());
    }
}
