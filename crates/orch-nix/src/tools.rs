//! The programs of Nix on this machine, and what they can do.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;
use tokio::process::Command;

/// The oldest Nix that everything here was tried with.
const OLDEST: Version = Version { major: 2, minor: 8 };

/// The version of a Nix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = ();

    /// Reads `nix-store (Nix) 2.8.0` and the like, with whatever follows the numbers.
    fn from_str(text: &str) -> Result<Self, ()> {
        let last = text.lines().next().and_then(|line| line.split_whitespace().next_back()).ok_or(())?;
        let mut numbers = last.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Self { major, minor }),
            _ => Err(()),
        }
    }
}

/// The programs of Nix, found where they are run from.
#[derive(Debug, Clone)]
pub struct Tools {
    /// The folder that they are in; without one, `PATH` is searched.
    folder: Option<PathBuf>,
    version: Version,
    /// Settings in the form of `nix.conf`, beside those of this machine.
    settings: Option<String>,
}

/// Nix cannot be used.
#[derive(Debug, Error)]
pub enum ToolsError {
    /// There is none.
    #[error("there is no `nix-store` here")]
    Absent(#[source] io::Error),
    /// It does not say what it is.
    #[error("`nix-store --version` said `{0}`, which is no version")]
    Unreadable(String),
    /// It is one that nobody tried.
    #[error("Nix {found} is older than {OLDEST}")]
    TooOld {
        /// What there is.
        found: Version,
    },
}

impl ToolsError {
    /// The way out.
    pub fn hint(&self) -> String {
        match self {
            Self::Absent(_) | Self::Unreadable(_) => {
                "install Nix (on Debian: `apt-get install nix-bin`), or leave nodes with `nixos` out with `--only`".into()
            }
            Self::TooOld { .. } => format!("install Nix {OLDEST} or newer"),
        }
    }
}

impl Tools {
    /// Asks the Nix of this machine what it is.
    pub async fn find(folder: Option<PathBuf>) -> Result<Self, ToolsError> {
        let found = Self { folder, version: OLDEST, settings: None };
        let said = found.command("nix-store").arg("--version").output().await.map_err(ToolsError::Absent)?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let version: Version = said.parse().map_err(|()| ToolsError::Unreadable(said.trim().to_owned()))?;
        if version < OLDEST {
            return Err(ToolsError::TooOld { found: version });
        }
        Ok(Self { version, ..found })
    }

    /// The same, with settings in the form of `nix.conf` instead of those in the variable `NIX_CONFIG`.
    pub fn with_settings(mut self, settings: impl Into<String>) -> Self {
        self.settings = Some(settings.into());
        self
    }

    /// Which Nix it is.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// One of its programs, to be run. It dies with whoever waits for it.
    pub(crate) fn command(&self, name: &str) -> Command {
        let program = self.folder.as_ref().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        let mut command = Command::new(program);
        command.kill_on_drop(true);
        if let Some(settings) = &self.settings {
            command.env("NIX_CONFIG", settings);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_whatever_follows_them() {
        let read = |text: &str| text.parse::<Version>().map(|version| version.to_string());
        assert_eq!(read("nix-store (Nix) 2.8.0\n"), Ok("2.8".into()));
        assert_eq!(read("nix (Nix) 2.34.8pre1"), Ok("2.34".into()));
        assert_eq!(read("nix-store (Lix, like Nix) 2.93.3"), Ok("2.93".into()));
        assert_eq!(read("nonsense"), Err(()));
        assert!("x 2.8.0".parse::<Version>() < "x 2.18.1".parse::<Version>());
    }
}
