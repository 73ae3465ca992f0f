//! Why something could not be done about the system of a node.

use std::io;
use std::path::Path;

use orch_model::system::Lease;
use thiserror::Error;

use crate::error::ApplyError;

/// Why something could not be done about the system of a node.
#[derive(Debug, Error)]
pub(crate) enum SystemError {
    /// The kernel would not do it.
    #[error("cannot {verb} `{path}`")]
    File {
        /// What was tried, as in `cannot read`.
        verb: &'static str,
        /// On what.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The node or a program of it would not do it.
    #[error(transparent)]
    Node(#[from] ApplyError),
    /// There is no Nix.
    #[error("there is no `{0}` here")]
    NoNix(&'static str),
    /// Somebody has the node to themselves.
    #[error("{0}")]
    Leased(Lease),
    /// Who had the node to themselves has it no more.
    #[error("the node does not belong to run `{0}` any more")]
    Lost(String),
    /// Another system is on its way.
    #[error("rollout `{id}` of run `{run}` is under way since {since}")]
    Busy {
        /// Which.
        id: String,
        /// Whose.
        run: String,
        /// Since when.
        since: String,
    },
    /// It cannot be gone over to.
    #[error("`{0}` is no system that can be gone over to: it has no `bin/switch-to-configuration`")]
    NotASystem(String),
    /// Nobody could say whether it is as it was.
    #[error("it cannot be told what the node boots by default")]
    HiddenDefault,
    /// Nobody would go on after the reboot.
    #[error("`{system}` differs in {what}, and nobody would watch over it once it is booted")]
    UnwatchedBoot {
        /// What it was to go over to.
        system: String,
        /// What only a boot brings.
        what: String,
    },
    /// Nobody ordered this here.
    #[error("rollout `{0}` is not known here")]
    Unknown(String),
    /// It has no way to start anew.
    #[error("the node cannot reboot itself")]
    NoReboot,
    /// It makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// Nobody would watch.
    #[error("the watcher does not start")]
    Unwatched,
    /// It takes too long.
    #[error("the time limit was reached: {0}")]
    Late(&'static str),
}

impl SystemError {
    /// Says what was tried on which path when the kernel refused.
    pub(super) fn file<E: Into<io::Error>>(
        verb: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self + use<E> {
        let path = path.display().to_string();
        move |source| Self::File { verb, path, source: source.into() }
    }

    /// What to try next.
    pub(crate) const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::File { .. } | Self::Node(_) | Self::Wrong(_) => None,
            Self::NoNix(_) => Some("install Nix on the node, or begin with an image that has it"),
            Self::Leased(_) => Some("wait until that run is over; a lease that nobody renews ends by itself"),
            Self::Lost(_) => Some("run again: its lease ended because nobody renewed it in time"),
            Self::Busy { .. } => Some("wait until it has ended; `orch-node system look` says how far it is"),
            Self::NotASystem(_) => Some("copy the whole closure of a NixOS system first"),
            Self::HiddenDefault => Some(
                "have its boot loader boot an entry by its name; one that boots what was booted last is not understood",
            ),
            Self::UnwatchedBoot { .. } => Some(
                "import `nixosModules.node` into it with `services.orch-node.enable = true`, or roll out without reboots",
            ),
            Self::Unknown(_) => Some("`orch-node system look` says which was the last"),
            Self::NoReboot => Some("stop and start it from outside"),
            Self::Unwatched => Some("see `/var/lib/orch/rollout.log` on the node"),
            Self::Late(_) => Some("`orch-node system look` says how far it is; the node goes on by itself"),
        }
    }
}
