//! What is said to a watcher by those who come from outside: that somebody is there, and what he thinks of the new system.
//!
//! Only the watcher acts on it. It is said in a file that is gone with a reboot, as is the system that it is about.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use super::clock::uptime_ms;
use super::error::SystemError;
use super::places::Places;

const VERDICT: &str = "verdict.json";
const VISIT: &str = "visit.json";

/// What somebody thinks of a new system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// It is to stay.
    Keep,
    /// It is to go, because these checks do not hold.
    Unhealthy(Vec<String>),
    /// It is to go, because somebody wants it to.
    Back,
}

#[derive(Serialize, Deserialize)]
struct Said<T> {
    id: String,
    what: T,
}

/// Says what is thought of a rollout.
pub(super) fn say(places: &Places, id: &str, verdict: Verdict) -> Result<(), SystemError> {
    write(places, VERDICT, id, verdict)
}

/// What was said of a rollout.
pub(super) fn heard(places: &Places, id: &str) -> Option<Verdict> {
    read(places, VERDICT, id)
}

/// Says that somebody has come to look at the new system: it is waited for what he says.
pub(super) fn visit(places: &Places, id: &str) -> Result<(), SystemError> {
    write(places, VISIT, id, uptime_ms())
}

/// When somebody came to look at the new system, in milliseconds since boot.
pub(super) fn visited(places: &Places, id: &str) -> Option<u64> {
    read(places, VISIT, id)
}

/// Forgets what was said, of whichever rollout.
pub(super) fn forget(places: &Places) -> Result<(), SystemError> {
    for path in [VERDICT, VISIT].map(|name| places.passing(name)) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(SystemError::file("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn write(places: &Places, name: &str, id: &str, what: impl Serialize) -> Result<(), SystemError> {
    places.make_passing()?;
    let said = serde_json::to_vec(&Said { id: id.into(), what });
    let said = said.expect("what orch defines can be written as JSON");
    // Two may speak at once: each has a draft of his own.
    let (path, draft) = (places.passing(name), places.passing(&format!("{name}.{}", std::process::id())));
    fs::write(&draft, said).map_err(SystemError::file("write", &draft))?;
    fs::rename(&draft, &path).map_err(SystemError::file("replace", &path))
}

fn read<T: for<'a> Deserialize<'a>>(places: &Places, name: &str, id: &str) -> Option<T> {
    let said: Said<T> = serde_json::from_slice(&fs::read(places.passing(name)).ok()?).ok()?;
    (said.id == id).then_some(said.what)
}
