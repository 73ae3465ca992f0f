//! A node that fetches its configuration: from a server that it knows by its certificate, with tokens that follow each
//! other, by itself or when it is told to.

mod client;
mod converge;
mod converged;
mod enrol;
mod failure;
mod fitting;
mod memory;
mod pace;
mod presence;
mod progress;
mod run;
mod unit;

use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub(crate) use converge::Manner;
pub(crate) use converged::{Converged, PullError};
pub(crate) use enrol::enrol;
pub use memory::ENROLMENT;
pub(crate) use pace::Pace;
pub(crate) use unit::quoted;
pub use unit::{UNIT_NAME, unit};

use crate::error::ApplyError;
use crate::node::Node;
use crate::signals::Signals;
use crate::state::{Puller, RunLock, State, Tenure};
use converge::{Depth, Pull};
use run::Keeper;

/// How often is looked whether somebody else has done fetching.
const TICK: Duration = Duration::from_millis(100);

/// What came of a word to converge.
pub(crate) enum Told {
    /// This process was told, and does it.
    Process(u32),
    /// Nobody was there to be told, so it was done here.
    Done(Converged),
}

/// Converges once, in this process. Nothing where somebody else does.
pub(crate) fn fetch(node: &Node, manner: &Manner) -> Result<Option<Converged>, PullError> {
    let state = State::make(node)?;
    let Some(_lock) = RunLock::try_take(&state, Tenure::Once)? else { return Ok(None) };
    let signals = listen()?;
    Pull { node, state: &state, signals: &signals, manner }.converge(Depth::Full).map(Some)
}

/// Keeps the node as it should be, until it is told to stop. Nothing where somebody else does.
pub(crate) fn run(node: &Node, manner: &Manner) -> Result<Option<()>, PullError> {
    // Before anybody can know this process: whoever tells it to look again must not end it.
    let signals = listen()?;
    let state = State::make(node)?;
    let Some(_lock) = RunLock::try_take(&state, Tenure::Stays)? else { return Ok(None) };
    Keeper::new(Pull { node, state: &state, signals: &signals, manner }).run().map(Some)
}

/// Tells whoever keeps the node as it should be to look now; does it here where nobody does. Nothing where somebody fetches
/// for all the time there is.
pub(crate) fn converge(node: &Node, manner: &Manner) -> Result<Option<Told>, PullError> {
    let deadline = Instant::now() + manner.limit;
    let state = State::make(node)?;
    loop {
        if let Some(converged) = fetch(node, manner)? {
            return Ok(Some(Told::Done(converged)));
        }
        if let Some(puller) = Puller::find(&state)?.filter(|puller| puller.stays && look_again(puller)) {
            return Ok(Some(Told::Process(puller.pid)));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(TICK);
    }
}

/// Tells a process to look again. Whether it was there to be told.
fn look_again(puller: &Puller) -> bool {
    let pid = i32::try_from(puller.pid).ok().and_then(Pid::from_raw);
    let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return false };
    // Only what is looked at after it is held is known to be the one that is held.
    puller.is_alive() && pidfd_send_signal(&process, Signal::HUP).is_ok()
}

fn listen() -> Result<Signals, ApplyError> {
    Signals::listen().map_err(ApplyError::file("listen for", "signals".as_ref()))
}
