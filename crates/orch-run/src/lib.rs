//! A plan to the world.
//!
//! This crate owns every effect that is not a vendor's: reading a site from disk ([`load`]), looking at hosts
//! ([`observe`]), locks ([`HostLocks`]), the append-only journal of a run ([`RunJournal`]), carrying a plan out
//! ([`run`]) and telling what became of it ([`Report`]). Vendors stand behind the [`Provider`] and [`Transport`]
//! traits; nothing here knows one.
//!
//! Nothing is decided here that a plan could decide, and nothing is called done that was not read back.

mod caller;
mod doors;
mod driver;
mod execute;
mod journal;
mod leaks;
pub mod live;
pub mod load;
mod lock;
pub mod log;
mod observe;
mod permit;
mod progress;
mod provider;
mod registry;
mod report;
mod runner;
mod runs;
mod state_dir;
pub mod status;
mod system;
mod tenure;
pub mod told;
mod transport;
pub mod treasury;
mod trial;
mod wish;

#[cfg(feature = "memory")]
pub mod conformance;
#[cfg(feature = "memory")]
pub mod memory;

pub use doors::{Doors, Presence, at_once, picked};
pub use driver::Driver;
pub use execute::{ExecOutcome, Execution, NodeExecution};
pub use journal::{Entry, Ill, JournalFileError, RunId, RunJournal, StepValue};
pub use leaks::Left;
pub use lock::{Holder, HostLocks, LockError, start_of};
pub use observe::observe;
pub use orch_dag::{Control, Hooks};
pub use orch_secrets::Secret;
pub use orch_secrets::keyring::withhold;
pub use permit::Permit;
pub use progress::Progress;
pub use provider::{Belonging, Done, Order, Owner, Pin, Place, Places, Provider, ProviderError, Scope};
pub use registry::{Registry, RegistryError};
pub use report::{ExitCode, GateReport, NodeReport, NodeStatus, Paused, Report, RunState, StepReport};
pub use runner::{Herald, Means, Patience, Watch, run};
pub use runs::{RunSummary, Runs};
pub use state_dir::{StateDir, StateDirError};
pub use status::Standing;
pub use system::{Leaser, Reverter};
pub use transport::{Configured, Door, Ended, Enroller, Target, Transport, TransportError};
pub use treasury::{NoTreasury, SiteTreasury, Treasury, TreasuryError, know_secrets};
pub use trial::{Phase, Trial, TrialError, TrialReport};
pub use wish::{Wish, WishError};
