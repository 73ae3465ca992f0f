//! The secrets that a node says it has.

use std::collections::BTreeSet;

use orch_model::SecretDigest;
use orch_model::pull::HOLDS_DIGITS;

/// The secrets that a node says it has, by the first digits of their digests, or by all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holds(BTreeSet<String>);

impl Holds {
    /// Reads a list with commas. What makes no sense was not said.
    pub(crate) fn of(list: &str) -> Self {
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_one = |text: &&str| {
            text.parse::<SecretDigest>().is_ok() || (text.len() == HOLDS_DIGITS && is_hex(text))
        };
        Self(list.split(',').filter(is_one).map(str::to_owned).collect())
    }

    /// Whether this is one of them.
    pub(crate) fn hold(&self, digest: &SecretDigest) -> bool {
        let text = digest.as_str();
        let first = text.get(..HOLDS_DIGITS).unwrap_or(text);
        self.0.contains(first) || self.0.contains(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_first_digits_or_by_all_of_them() {
        let digest: SecretDigest = "0123456789abcdef0123456789abcdef".parse().unwrap();
        for (list, is_held) in [
            ("", false),
            ("0123456789ab", true),
            ("0123456789abcdef0123456789abcdef", true),
            ("zz,,0123456789ab", true),
            ("0123456789a", false),
            ("0123456789abc", false),
            ("0123456789aB", false),
            ("0123456789abcdef0123456789abcdee", false),
            ("1123456789ab", false),
        ] {
            assert_eq!(Holds::of(list).hold(&digest), is_held, "{list}");
        }
    }
}
