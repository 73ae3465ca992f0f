//! Starting a machine: three processes, one inside the other.
//!
//! `boot` stays outside: it takes the machine's lock, opens the way to where the machine is to live, and writes down who
//! its first process is before that does anything. `unshare` makes the namespaces and the network and holds them until
//! the machine has them. `init` is the machine's first process: it puts the root together and becomes its init.
//!
//! They talk over standard input and output, a word a line. Whoever loses the one outside ends.

mod accounts;
mod discard;
mod identity;
mod inside;
mod outside;
mod root;
mod talk;
mod trouble;
mod unshared;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub(crate) use discard::{discard, discard_as_them};
pub(crate) use inside::{drop_powers, init};
pub(crate) use outside::{boot, join};
pub(crate) use root::make_read_only;
pub(crate) use trouble::{Need, Trouble};
pub(crate) use unshared::{Order, probe, probe_inside, unshare};

/// The word for each of the three on the command line.
pub(crate) const BOOT: &str = "boot";
pub(crate) const UNSHARE: &str = "unshare";
pub(crate) const INIT: &str = "init";
/// Removes the files of those who are other users only inside of a machine.
pub(crate) const DISCARD: &str = "discard";
/// Tries what a machine needs of the kernel.
pub(crate) const PROBE: &str = "probe";
/// Tries what a machine's first process needs.
pub(crate) const PROBE_INSIDE: &str = "probe-inside";

/// The bridge of every network of machines.
const BRIDGE: &str = "orch0";
/// What a running machine knows about itself, and what orch needs in it.
pub(crate) const RUN: &str = "run/orch";
/// The machine's mark, for those inside of it.
pub(crate) const OWN_MARK: &str = "/run/orch/uuid";
/// The network of the host's bridge, held by every machine on it: so it lasts as long as the last of them.
pub(crate) const UPLINK: &str = "run/orch/uplink";
/// The program that configures the machine.
pub(crate) const PROGRAM: &str = "/run/orch/orch-node";

/// Why a machine does not start.
#[derive(Debug, Error)]
pub(crate) enum BootError {
    /// One thing did not work.
    #[error("cannot {doing}")]
    Step {
        doing: String,
        /// What of this computer it was about, where that tells what to do.
        need: Option<Need>,
        #[source]
        source: io::Error,
    },
    /// The machine that it lives inside of is off.
    #[error("machine `{0}`, which it lives inside of, does not run")]
    ParentOff(String),
    /// The process on the other side ended.
    #[error("{0}")]
    Said(String),
    /// The process on the other side says what stands in the way.
    #[error("{}", .0.words)]
    Told(Trouble),
    /// It took too long.
    #[error("it did not come up in time: {0} was waited for")]
    Late(&'static str),
    /// It cannot be found by its pid.
    #[error("its first process cannot be found")]
    Lost,
    /// The image has nothing to start.
    #[error("its image has no init: {}", .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoInit(Vec<PathBuf>),
}

/// Names what was being done when an error came.
trait Doing<T> {
    fn doing(self, doing: impl Into<String>) -> Result<T, BootError>;

    /// The same where that needs something that this computer may not give.
    fn needing(self, need: Need, doing: impl Into<String>) -> Result<T, BootError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, doing: impl Into<String>) -> Result<T, BootError> {
        self.map_err(|source| BootError::Step { doing: doing.into(), need: None, source: source.into() })
    }

    fn needing(self, need: Need, doing: impl Into<String>) -> Result<T, BootError> {
        self.map_err(|source| BootError::Step {
            doing: doing.into(),
            need: Some(need),
            source: source.into(),
        })
    }
}
