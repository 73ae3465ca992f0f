//! Why a lab cannot be had, and what to do about it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use orch_model::HostName;
use thiserror::Error;

use crate::addresses::AddressError;
use crate::certificate::CertificateError;
use crate::machines::Trouble;
use crate::serve::ServeError;

/// A lab cannot be had.
#[derive(Debug, Error)]
pub enum LabError {
    /// A file of it is of no use.
    #[error("`{path}` cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file of it is of another version of orch.
    #[error("`{0}` was written by another version of orch")]
    Version(PathBuf),
    /// It has no addresses.
    #[error(transparent)]
    Addresses(#[from] AddressError),
    /// A host has no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// This user may not listen where the lab has to.
    #[error("this user may not listen at port {0} of loopback addresses, where a lab has to")]
    Forbidden(u16),
    /// Somebody listens at all addresses of this computer, also at those of the lab.
    #[error("port {0} is taken at every address of this computer, also at those of a lab")]
    Occupied(u16),
    /// An API cannot be listened for.
    #[error("host `{host}` cannot be served at {at}")]
    Listen {
        /// The host.
        host: HostName,
        /// Where.
        at: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// An API cannot be served.
    #[error("host `{host}` cannot be served")]
    Serve {
        /// The host.
        host: HostName,
        /// Why not.
        source: ServeError,
    },
    /// The machines of a host are of no use.
    #[error("the machines of host `{host}` cannot be used")]
    Machines {
        /// The host.
        host: HostName,
        /// Why not.
        source: Trouble,
    },
    /// It keeps its machines in another way than is asked for.
    #[error("the lab in `{folder}` was made with machines {}", if *.paper { "on paper alone" } else { "that run" })]
    Paper {
        /// Where it is.
        folder: PathBuf,
        /// Whether its machines are on paper alone.
        paper: bool,
    },
    /// There is none there.
    #[error("there is no lab in `{0}`")]
    None(PathBuf),
    /// It is there, and does not answer.
    #[error("the lab in `{0}` does not run")]
    Down(PathBuf),
    /// It did not come up.
    #[error("the lab does not come up: {0}")]
    NotUp(String),
    /// It does not end.
    #[error("the lab's process {0} does not end")]
    Lives(u32),
    /// Somebody works with it.
    #[error("the lab in `{0}` is in use by another process")]
    InUse(PathBuf),
    /// It says no.
    #[error("{0}")]
    Said(String),
}

impl LabError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }

    /// What to try next.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Version(_) => {
                "`orch lab down` removes a lab of any version; `orch lab up` then makes a new one"
            }
            Self::Addresses(AddressError::Full { .. }) => {
                "`orch lab down` gives up the addresses; then `orch lab up` in a site with fewer such hosts"
            }
            Self::Addresses(_) => "take the other lab down first, by `orch lab down` with its --state",
            Self::Forbidden(_) => "run `orch lab up` as root",
            Self::Occupied(22) => {
                "it is most likely the SSH server of this computer: stop it (`systemctl stop ssh.socket ssh.service`) or give it one address by `ListenAddress`, then `orch lab up` again"
            }
            Self::Occupied(_) => "`ss -ltnp` shows who listens there; end that, then `orch lab up` again",
            Self::Listen { .. } => "`ss -ltnp` shows who listens there; then `orch lab up` again",
            Self::Paper { paper: true, .. } => {
                "`orch lab up --paper` brings it up again; `orch lab down` removes it"
            }
            Self::Paper { paper: false, .. } => {
                "`orch lab up` without --paper brings it up again; `orch lab down` removes it and its machines"
            }
            Self::None(_) | Self::Down(_) => "`orch lab up` brings it up",
            Self::Lives(_) => "end the process, then `orch lab down` again",
            Self::InUse(_) => "wait until that is done, then try again; `orch lab status` shows how it is",
            Self::Machines { .. } => "mend that, then run `orch lab up` or `orch lab down` again",
            Self::NotUp(_)
            | Self::File { .. }
            | Self::Certificate(_)
            | Self::Serve { .. }
            | Self::Said(_) => {
                "the lab's own log is `daemon.log` in its folder; `orch lab down` removes the lab, whatever state it is in"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_out_but_a_wait_names_the_command() {
        let folder = PathBuf::from("lab");
        let errors = [
            LabError::Version(folder.clone()),
            LabError::Forbidden(22),
            LabError::Occupied(22),
            LabError::Occupied(443),
            LabError::Paper { folder: folder.clone(), paper: true },
            LabError::None(folder.clone()),
            LabError::Down(folder.clone()),
            LabError::InUse(folder),
            LabError::NotUp("x".into()),
            LabError::Lives(1),
            LabError::Addresses(AddressError::None),
            LabError::Addresses(AddressError::Full { host: "a".into() }),
        ];
        for error in errors {
            assert!(error.hint().contains("`orch lab "), "{error}: {}", error.hint());
        }
    }
}
