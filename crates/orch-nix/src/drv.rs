//! The path of a derivation: what is to be built, before it is.

use std::fmt;
use std::str::FromStr;

use orch_model::StorePath;
use serde::{Deserialize, Serialize};

/// A store path that ends in `.drv`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "StorePath", into = "StorePath")]
pub struct DrvPath(StorePath);

impl DrvPath {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The same, as any path of the store.
    pub const fn as_store_path(&self) -> &StorePath {
        &self.0
    }
}

impl TryFrom<StorePath> for DrvPath {
    type Error = String;

    fn try_from(path: StorePath) -> Result<Self, String> {
        let is_derivation = path.as_str().strip_suffix(".drv").is_some();
        if is_derivation {
            Ok(Self(path))
        } else {
            Err(format!("`{path}` is not a derivation: it does not end in `.drv`"))
        }
    }
}

impl From<DrvPath> for StorePath {
    fn from(path: DrvPath) -> Self {
        path.0
    }
}

impl FromStr for DrvPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<StorePath>()?.try_into()
    }
}

impl fmt::Display for DrvPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derivation_is_known_by_its_ending() {
        let read = |name: &str| format!("/nix/store/{}-{name}", "0".repeat(32)).parse::<DrvPath>();
        assert!(read("nixos-system-web.drv").is_ok());
        assert!(read("nixos-system-web").unwrap_err().contains("does not end in `.drv`"));
        assert!(read("a b.drv").is_err());
    }
}
