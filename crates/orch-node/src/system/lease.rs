//! Who has a node to themselves. A lease that nobody renews ends by itself, by a clock that nobody can set, and with the
//! boot that it was given in.

use std::fs::{self, File, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use orch_model::system::{Lease, LeaseClaim};
use serde::{Deserialize, Serialize};

use super::clock::{after, left_until, uptime_ms};
use super::error::SystemError;
use super::places::Places;

const LEASE: &str = "lease.json";
const LOCK: &str = "desk.lock";
/// Nobody holds the desk for longer than a moment.
const PATIENCE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(5);

/// A lease as it is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    holder: String,
    run: String,
    since: String,
    boot: String,
    /// In milliseconds since boot.
    until: u64,
}

/// The one place where it is decided who may do something with a node, held by one at a time.
#[derive(Debug)]
pub(super) struct Desk(#[expect(dead_code, reason = "it is held, and not looked at")] File);

impl Desk {
    pub(super) fn take(places: &Places) -> Result<Self, SystemError> {
        places.make_passing()?;
        let path = places.passing(LOCK);
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(SystemError::file("open", &path))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(TICK),
                Err(TryLockError::WouldBlock) => return Err(SystemError::Late("somebody else is served")),
                Err(TryLockError::Error(error)) => return Err(SystemError::file("lock", &path)(error)),
            }
        }
    }
}

/// Who has the node now.
pub(super) fn current(places: &Places) -> Option<Lease> {
    let Held { holder, run, since, until, .. } = held(places)?;
    // Whoever has a part of a second has it still.
    let seconds_left = left_until(until).as_millis().div_ceil(1000);
    let seconds_left = u64::try_from(seconds_left).unwrap_or(u64::MAX);
    Some(Lease { holder, run, since, seconds_left })
}

/// Gives the node to who asks, unless another run has it. Whether it was given.
pub(super) fn claim(places: &Places, claim: &LeaseClaim) -> Result<bool, SystemError> {
    let _desk = Desk::take(places)?;
    let held = held(places);
    if held.as_ref().is_some_and(|held| held.run != claim.run) {
        return Ok(false);
    }
    let since = held.map_or_else(|| jiff::Timestamp::now().to_string(), |held| held.since);
    let LeaseClaim { holder, run, seconds } = claim.clone();
    write(places, &Held { holder, run, since, boot: places.boot(), until: after(uptime_ms(), seconds) })?;
    Ok(true)
}

/// Gives it back, where this run has it.
pub(super) fn release(places: &Places, run: &str) -> Result<(), SystemError> {
    let _desk = Desk::take(places)?;
    let path = places.passing(LEASE);
    if held(places).is_some_and(|held| held.run == run) {
        fs::remove_file(&path).map_err(SystemError::file("remove", &path))?;
    }
    Ok(())
}

/// Refuses where another run has the node.
pub(super) fn check(places: &Places, run: &str) -> Result<(), SystemError> {
    match current(places) {
        Some(lease) if lease.run != run => Err(SystemError::Leased(lease)),
        _ => Ok(()),
    }
}

/// Refuses where this run does not have the node, or has it no more.
pub(super) fn require(places: &Places, run: &str) -> Result<(), SystemError> {
    check(places, run)?;
    current(places).map(drop).ok_or_else(|| SystemError::Lost(run.into()))
}

/// The lease, where it still holds.
fn held(places: &Places) -> Option<Held> {
    let held: Held = serde_json::from_slice(&fs::read(places.passing(LEASE)).ok()?).ok()?;
    let holds = !left_until(held.until).is_zero() && held.boot == places.boot();
    holds.then_some(held)
}

fn write(places: &Places, held: &Held) -> Result<(), SystemError> {
    let (path, draft) = (places.passing(LEASE), places.passing("lease.draft"));
    let text = serde_json::to_vec(held).expect("what orch defines can be written as JSON");
    fs::write(&draft, text).map_err(SystemError::file("write", &draft))?;
    fs::rename(&draft, &path).map_err(SystemError::file("replace", &path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;

    fn ask(places: &Places, run: &str, seconds: u64) -> bool {
        let holder = format!("somebody of {run}");
        claim(places, &LeaseClaim { holder, run: run.into(), seconds }).unwrap()
    }

    #[test]
    fn one_run_has_a_node_until_it_gives_it_back_or_stops_asking() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::of(&Node::at(root.path()).unwrap());
        assert!(ask(&places, "a", 60));
        let first = current(&places).unwrap();
        assert!(!ask(&places, "b", 60), "another run has it");
        assert!(check(&places, "b").unwrap_err().to_string().contains("somebody of a"));
        assert!(ask(&places, "a", 90), "the same run may ask again");
        let renewed = current(&places).unwrap();
        assert!(renewed.since == first.since && renewed.seconds_left > 60, "{renewed:?}");
        release(&places, "b").unwrap();
        assert!(current(&places).is_some(), "only who has it gives it back");
        release(&places, "a").unwrap();
        release(&places, "a").unwrap();
        assert!(check(&places, "a").is_ok(), "nobody is in the way");
        assert!(require(&places, "a").unwrap_err().to_string().contains("run `a`"), "and it is not theirs");
        assert!(ask(&places, "b", 0), "a lease of nothing is over at once");
        assert!(current(&places).is_none() && ask(&places, "a", 60));
    }

    #[test]
    fn a_lease_ends_with_the_boot_that_it_was_given_in() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::of(&Node::at(root.path()).unwrap());
        assert!(ask(&places, "a", 60) && current(&places).is_some());
        let start = root.path().join("run/orch");
        fs::create_dir_all(&start).unwrap();
        fs::write(start.join("start"), "another").unwrap();
        assert!(current(&places).is_none() && ask(&places, "b", 60));
    }
}
