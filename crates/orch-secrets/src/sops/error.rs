//! What can be wrong with a sops file. Every message names the file, and none of them a value.

use thiserror::Error;

use crate::path::KeyPath;
use crate::reader::Reader;

/// A sops file cannot be read, opened or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SopsError {
    /// There is no metadata in it.
    #[error("`{file}` is not a sops file: it has no metadata of sops")]
    NotSops {
        /// The file.
        file: String,
    },
    /// The text is not of the format that the name of the file promises, or not as sops writes it.
    #[error("{file}:{line}:{column}: {what}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, from one.
        line: usize,
        /// The column, from one, in characters.
        column: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// The file ends before it is whole.
    #[error("`{file}` is cut short")]
    Truncated {
        /// The file.
        file: String,
    },
    /// The metadata do not say what they must.
    #[error("the metadata of `{file}` are not as sops writes them: {what}")]
    BadMetadata {
        /// The file.
        file: String,
        /// What is wrong with them.
        what: &'static str,
    },
    /// A limit was passed.
    #[error("`{file}` is too large: {what}")]
    TooLarge {
        /// The file.
        file: String,
        /// Which limit.
        what: &'static str,
    },
    /// No identity that was found is among the recipients.
    #[error("no identity here can open `{file}`; it is for {}; tried: {}", names(recipients), list(tried))]
    NoIdentity {
        /// The file.
        file: String,
        /// Who could open it.
        recipients: Vec<Reader>,
        /// Where identities were looked for, and what became of that.
        tried: Vec<String>,
    },
    /// The data key is shared out among groups, and too few of them could be opened.
    #[error(
        "`{file}` needs {needed} of its groups of keys, and identities here open {opened}; tried: {}",
        list(tried)
    )]
    TooFewGroups {
        /// The file.
        file: String,
        /// How many could be opened.
        opened: usize,
        /// How many are needed.
        needed: usize,
        /// Where identities were looked for, and what became of that.
        tried: Vec<String>,
    },
    /// There is an identity for a recipient, and what the file holds for it does not open.
    #[error("what `{file}` holds for `{recipient}` does not open with its identity")]
    WrongKey {
        /// The file.
        file: String,
        /// The recipient.
        recipient: String,
    },
    /// A value was changed, or stands where it was not written.
    #[error("the value at `{path}` of `{file}` was changed or moved, or is of another key")]
    TamperedValue {
        /// The file.
        file: String,
        /// The value.
        path: KeyPath,
    },
    /// A value stands in clear where the rules of the file say that it is encrypted.
    #[error("the value at `{path}` of `{file}` is not encrypted, and by the rules of the file it must be")]
    NotEncrypted {
        /// The file.
        file: String,
        /// The value.
        path: KeyPath,
    },
    /// The values are not all, and in the order, that was written.
    #[error("the values of `{file}` are not the ones that were written: its MAC does not match")]
    MacMismatch {
        /// The file.
        file: String,
    },
    /// There is no MAC.
    #[error("`{file}` has no MAC, so nothing says that its values are the ones that were written")]
    MacMissing {
        /// The file.
        file: String,
    },
    /// There is nothing at a path.
    #[error("`{file}` has no value at `{path}`")]
    NoSuchValue {
        /// The file.
        file: String,
        /// The path.
        path: KeyPath,
    },
    /// There is more than one value at a path, or null.
    #[error("`{path}` of `{file}` is {what}, and not one value")]
    NotOneValue {
        /// The file.
        file: String,
        /// The path.
        path: KeyPath,
        /// What it is instead.
        what: &'static str,
    },
    /// The file is fine, and asks for something that this program does not do.
    #[error("`{file}`: {what}")]
    Unsupported {
        /// The file.
        file: String,
        /// What is not done.
        what: String,
        /// What does it.
        instead: &'static str,
    },
    /// A file without a reader could never be opened again.
    #[error("`{file}` would have no recipient that can open it")]
    NobodyCanRead {
        /// The file.
        file: String,
    },
    /// What was written does not open to what was meant, so it is not handed out.
    #[error("`{file}` would not say what is meant: {what}")]
    Spoiled {
        /// The file.
        file: String,
        /// What differs.
        what: &'static str,
    },
}

impl SopsError {
    /// What to try next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotSops { .. } => "encrypt it with `sops encrypt --in-place`",
            Self::Malformed { .. } => {
                "mend that place, or take the file as sops wrote it from version control"
            }
            Self::Truncated { .. } => "take the whole file from version control",
            Self::BadMetadata { .. } => "take the file as sops wrote it from version control",
            Self::TooLarge { .. } => "share its values out among several files",
            Self::NoIdentity { recipients, .. } if !recipients.iter().any(Reader::is_writable) => {
                "none of its recipients is of a kind that opens here, which are `age1…` of X25519 and `ssh-ed25519`; \
                 add one with `sops updatekeys`"
            }
            Self::NoIdentity { .. } | Self::TooFewGroups { .. } => {
                "set SOPS_AGE_KEY_FILE, or have the file encrypted for a key of yours with `sops updatekeys`"
            }
            Self::WrongKey { .. } => "write the recipients of the file anew with `sops updatekeys`",
            Self::TamperedValue { .. } | Self::MacMismatch { .. } | Self::MacMissing { .. } => {
                "edit encrypted files with `sops edit` only; take the last good one from version control"
            }
            Self::NotEncrypted { .. } => {
                "put it in with `sops set` or `sops edit`, and change it where it is used: it was in a plain file"
            }
            Self::NoSuchValue { .. } | Self::NotOneValue { .. } => {
                "a path is written as `db.users[0].password`; it must end at one value"
            }
            Self::Unsupported { instead, .. } => instead,
            Self::NobodyCanRead { .. } => "name at least one age or ssh-ed25519 recipient",
            Self::Spoiled { .. } => "nothing was written; change this file with `sops` itself",
        }
    }
}

fn names(recipients: &[Reader]) -> String {
    let names: Vec<String> = recipients.iter().map(|one| format!("`{one}`")).collect();
    if names.is_empty() { String::from("nobody") } else { names.join(", ") }
}

fn list(tried: &[String]) -> String {
    if tried.is_empty() { String::from("nothing") } else { tried.join("; ") }
}
