//! Where a driver keeps what it wrote down: journals of runs, and locks. Nothing of those is needed to find, heal or
//! destroy a node; losing them loses history only. Machines that live on this very computer are kept here too.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The driver's own folder, readable by its user alone.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
}

/// The state directory cannot be used.
#[derive(Debug, Error)]
pub enum StateDirError {
    /// Nothing says where it is.
    #[error("there is no place for the state directory: neither XDG_STATE_HOME nor HOME is set")]
    Nowhere,
    /// It could not be made.
    #[error("the state directory `{path}` cannot be made")]
    Make {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl StateDirError {
    /// What to try next.
    pub const fn hint(&self) -> &'static str {
        "name one with --state DIR or ORCH_STATE"
    }
}

impl StateDir {
    /// The folder given, or `$XDG_STATE_HOME/orch`, or `~/.local/state/orch`.
    pub fn locate(given: Option<&Path>) -> Result<Self, StateDirError> {
        if let Some(root) = given {
            return Ok(Self { root: root.to_owned() });
        }
        let home = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = home("XDG_STATE_HOME").or_else(|| Some(home("HOME")?.join(".local/state")));
        Ok(Self { root: base.ok_or(StateDirError::Nowhere)?.join("orch") })
    }

    /// What a lab on this computer keeps; it need not exist.
    pub fn lab(&self) -> PathBuf {
        self.root.join("lab")
    }

    /// The folder of run journals; it need not exist.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Makes the folder of run journals.
    pub fn make_runs(&self) -> Result<PathBuf, StateDirError> {
        make(self.runs())
    }

    /// The folder of machines that live on this computer; it need not exist.
    pub fn local(&self) -> PathBuf {
        self.root.join("local")
    }

    /// The folder of the driver's own keys; it need not exist.
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// The folder of what is remembered of NixOS systems that were evaluated.
    pub fn evaluations(&self) -> PathBuf {
        self.root.join("evaluations")
    }

    /// The folder in which the ways to nodes are written down for `ssh`; it need not exist.
    pub fn ssh(&self) -> PathBuf {
        self.root.join("ssh")
    }

    /// The folder of what servers of sites keep; it need not exist.
    pub fn server(&self) -> PathBuf {
        self.root.join("server")
    }

    /// Makes the folder of locks.
    pub fn make_locks(&self) -> Result<PathBuf, StateDirError> {
        make(self.root.join("locks"))
    }
}

fn make(path: PathBuf) -> Result<PathBuf, StateDirError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    made.map_err(|source| StateDirError::Make { path: path.clone(), source })?;
    Ok(path)
}
