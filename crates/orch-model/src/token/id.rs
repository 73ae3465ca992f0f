//! Which token it is: its place in a chain in which each is followed by the next.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A chain of tokens, begun by the one that a node is given from outside. Of two chains the later one is the larger:
/// whoever begins one puts the time in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain(pub u128);

/// A token's place in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId {
    /// The chain.
    pub chain: Chain,
    /// How many came before it.
    pub generation: u64,
}

impl TokenId {
    /// The first token of a chain.
    pub const fn first(chain: Chain) -> Self {
        Self { chain, generation: 0 }
    }

    /// The one that follows it.
    pub const fn next(self) -> Self {
        Self { generation: self.generation.saturating_add(1), ..self }
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Chain {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_plain);
        number.map(Self).ok_or_else(|| "a chain of tokens is 32 lower-case hexadecimal digits".to_owned())
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.chain, self.generation)
    }
}

impl FromStr for TokenId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{}` is not the id of a token", crate::word::shorten(text));
        let (chain, generation) = text.split_once('.').ok_or_else(refused)?;
        let id = Self { chain: chain.parse()?, generation: generation.parse().map_err(|_| refused())? };
        // One id has one spelling.
        if format!("{id}") == text { Ok(id) } else { Err(refused()) }
    }
}

/// Through their text, in and out.
macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

as_text!(Chain);
as_text!(TokenId);

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn an_id_reads_back_and_has_one_spelling() {
        let id = TokenId { chain: Chain(7 << 100), generation: 12 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.next() > id && TokenId::first(Chain(8 << 100)) > id.next());
        for text in ["", "1.1", "x.1", &format!("{}.01", id.chain), &format!("{}.+1", id.chain)] {
            assert!(text.parse::<TokenId>().is_err(), "{text}");
        }
    }
}
