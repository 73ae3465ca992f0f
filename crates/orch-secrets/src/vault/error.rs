//! Why a mention leads nowhere, or what is there cannot be had. No message holds a value.

use orch_model::SecretRef;
use thiserror::Error;

use super::Spot;
use crate::path::{KeyPath, PathError};
use crate::rules::RulesError;
use crate::sops::SopsError;

/// A secret cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VaultError {
    /// The mention makes no sense.
    #[error("`{mention}` is not a mention of a secret: {why}")]
    Malformed {
        /// The mention.
        mention: SecretRef,
        /// Why not.
        why: PathError,
    },
    /// No file has a value of that name.
    #[error("`{mention}` leads nowhere: no file below `secrets/` has a value of that name{}", but(unread))]
    Nowhere {
        /// The mention.
        mention: SecretRef,
        /// Files that cannot be read: it may be in one of them.
        unread: Vec<String>,
    },
    /// Several have.
    #[error("`{mention}` could be {}", list(spots))]
    Ambiguous {
        /// The mention.
        mention: SecretRef,
        /// Every value of that name.
        spots: Vec<Spot>,
    },
    /// The file does not exist.
    #[error("there is no file `{file}`")]
    NoFile {
        /// The file.
        file: String,
    },
    /// The mention names a file that is more than one value.
    #[error("`{file}` holds several values; say which: `secret:{file}#<path>`")]
    WhichValue {
        /// The file.
        file: String,
        /// Where the first of its values is.
        example: KeyPath,
    },
    /// The file has no such value.
    #[error("`{file}` has no value{}", at(path))]
    NoValue {
        /// The file.
        file: String,
        /// Where it should be.
        path: KeyPath,
    },
    /// The file cannot be read.
    #[error("`{file}` cannot be read: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why not.
        why: String,
    },
    /// The file is not as it should be, or cannot be opened.
    #[error(transparent)]
    Sops(#[from] SopsError),
    /// The rules of the site are not as they should be.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

impl VaultError {
    /// What to try next.
    pub fn hint(&self) -> String {
        match self {
            Self::Malformed { why, .. } => why.hint().into(),
            Self::Nowhere { .. } => {
                "put it into a sops file with `orch secrets edit secrets/NAME.yaml`, or mention it as `secret:<file>#<path>`".into()
            }
            Self::Ambiguous { spots, .. } => match spots.first() {
                Some(spot) => format!("say which one, such as `secret:{spot}`"),
                None => "mention it as `secret:<file>#<path>`".into(),
            },
            Self::NoFile { file } => format!("make it with `orch secrets edit {file}`"),
            Self::NoValue { file, .. } => format!("put it there with `orch secrets edit {file}`"),
            Self::WhichValue { file, example } => format!("such as `secret:{file}#{example}`"),
            Self::Unreadable { file, .. } => format!("see whether `{file}` can be read by you"),
            Self::Sops(error) => error.hint().into(),
            Self::Rules(error) => error.hint().into(),
        }
    }
}

/// Where in a file; an empty file has no place to name.
fn at(path: &KeyPath) -> String {
    if path.is_root() { String::new() } else { format!(" at `{path}`") }
}

fn but(unread: &[String]) -> String {
    let files: Vec<String> = unread.iter().map(|file| format!("`{file}`")).collect();
    if files.is_empty() { String::new() } else { format!(" ({} cannot be read)", files.join(", ")) }
}

fn list(spots: &[Spot]) -> String {
    let spots: Vec<String> = spots.iter().map(|spot| format!("`{spot}`")).collect();
    spots.join(" or ")
}
