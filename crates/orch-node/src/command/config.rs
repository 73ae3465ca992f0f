//! A configuration from outside: of bounded size, and believed only once it has the digest that it claims.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use thiserror::Error;

/// No configuration is larger.
const LARGEST: u64 = 16 << 20;

/// Where a configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Input,
    File(PathBuf),
}

/// Why it cannot be had.
#[derive(Debug, Error)]
pub(super) enum ConfigError {
    #[error("the configuration cannot be read")]
    Unreadable(#[from] io::Error),
    #[error("the configuration is larger than {} MiB", LARGEST >> 20)]
    TooLarge,
    #[error("this is not what a node is given")]
    Wrong(#[from] serde_json::Error),
}

impl Origin {
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        match self {
            Self::Input => read(io::stdin().lock()),
            Self::File(path) => read(File::open(path)?),
        }
    }
}

fn read<T: DeserializeOwned>(from: impl Read) -> Result<T, ConfigError> {
    let mut text = Vec::new();
    let length = from.take(LARGEST + 1).read_to_end(&mut text)?;
    if u64::try_from(length).is_ok_and(|length| length > LARGEST) {
        return Err(ConfigError::TooLarge);
    }
    Ok(serde_json::from_slice(&text)?)
}
