//! Which values of a file are encrypted: one rule, applied to every key on the way to a value.

use regex::bytes::Regex;

use super::error::SopsError;
use super::pattern;

/// The suffix that leaves a value in clear where a file has no rule of its own.
const DEFAULT_SUFFIX: &str = "_unencrypted";

/// Which values are encrypted, and what the MAC covers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The rule; without one, keys that end with `_unencrypted` are left in clear.
    pub rule: Option<Rule>,
    /// Whether the MAC leaves out what is in clear.
    pub mac_only_encrypted: bool,
}

/// The rules of sops. Every key on the way to a value is looked at, not only the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// In clear where a key ends like this.
    UnencryptedSuffix(String),
    /// Encrypted only where a key ends like this.
    EncryptedSuffix(String),
    /// In clear where a key matches.
    UnencryptedRegex(String),
    /// Encrypted only where a key matches.
    EncryptedRegex(String),
    /// In clear where a comment before it matches.
    UnencryptedCommentRegex(String),
    /// Encrypted only where a comment before it matches.
    EncryptedCommentRegex(String),
}

impl Rule {
    /// Its name in metadata and in `.sops.yaml`, and what it looks for.
    pub(crate) fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::UnencryptedSuffix(text) => ("unencrypted_suffix", text),
            Self::EncryptedSuffix(text) => ("encrypted_suffix", text),
            Self::UnencryptedRegex(text) => ("unencrypted_regex", text),
            Self::EncryptedRegex(text) => ("encrypted_regex", text),
            Self::UnencryptedCommentRegex(text) => ("unencrypted_comment_regex", text),
            Self::EncryptedCommentRegex(text) => ("encrypted_comment_regex", text),
        }
    }
}

/// A rule that is ready to be asked.
pub(super) enum Selector {
    Suffix { suffix: String, encrypts: bool },
    Regex { regex: Regex, encrypts: bool },
    Comment { regex: Regex, encrypts: bool },
}

impl Selector {
    /// For reading a file.
    pub(super) fn new(file: &str, rule: Option<&Rule>) -> Result<Self, SopsError> {
        let bad = || SopsError::BadMetadata {
            file: file.to_owned(),
            what: "the regular expression that says which values are encrypted cannot be used",
        };
        let regex = |text: &str| pattern::compile(text).ok_or_else(bad);
        Ok(match rule {
            None => Self::Suffix { suffix: DEFAULT_SUFFIX.to_owned(), encrypts: false },
            Some(Rule::UnencryptedSuffix(suffix)) => Self::Suffix { suffix: suffix.clone(), encrypts: false },
            Some(Rule::EncryptedSuffix(suffix)) => Self::Suffix { suffix: suffix.clone(), encrypts: true },
            Some(Rule::UnencryptedRegex(text)) => Self::Regex { regex: regex(text)?, encrypts: false },
            Some(Rule::EncryptedRegex(text)) => Self::Regex { regex: regex(text)?, encrypts: true },
            Some(Rule::UnencryptedCommentRegex(text)) => {
                Self::Comment { regex: regex(text)?, encrypts: false }
            }
            Some(Rule::EncryptedCommentRegex(text)) => Self::Comment { regex: regex(text)?, encrypts: true },
        })
    }

    /// For writing one. Where comments say what is encrypted, that is left to sops: what belongs to what is its own to say.
    pub(super) fn for_writing(file: &str, rule: Option<&Rule>) -> Result<Self, SopsError> {
        match (Self::new(file, rule)?, rule) {
            (Self::Comment { .. }, Some(rule)) => Err(SopsError::Unsupported {
                file: file.to_owned(),
                what: format!("comments say which of its values are encrypted (`{}`)", rule.parts().0),
                instead: "use `sops edit` and `sops rotate` for such files, or `encrypted_regex`, which looks at keys",
            }),
            (selector, _) => Ok(selector),
        }
    }

    /// Whether comments matter.
    pub(super) fn is_about_comments(&self) -> bool {
        matches!(self, Self::Comment { .. })
    }

    /// Whether one of these comments is one that is looked for.
    pub(super) fn is_matched(&self, comments: &[&[u8]]) -> bool {
        match self {
            Self::Comment { regex, .. } => comments.iter().any(|text| regex.is_match(text)),
            _ => false,
        }
    }

    /// Whether the value at the end of these keys is encrypted, where no comments matter.
    pub(super) fn selects<'a>(&self, keys: impl Iterator<Item = &'a str>) -> bool {
        self.selects_below(keys, false)
    }

    /// The same, where a comment before it, or before what it is in, is one that is looked for, or none is.
    pub(super) fn selects_below<'a>(
        &self,
        mut keys: impl Iterator<Item = &'a str>,
        is_matched: bool,
    ) -> bool {
        match self {
            Self::Suffix { suffix, encrypts } => keys.any(|key| key.ends_with(suffix.as_str())) == *encrypts,
            Self::Regex { regex, encrypts } => keys.any(|key| regex.is_match(key.as_bytes())) == *encrypts,
            Self::Comment { encrypts, .. } => is_matched == *encrypts,
        }
    }
}
