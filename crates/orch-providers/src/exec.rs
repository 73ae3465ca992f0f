//! One program run on a node for somebody, within its time: what is the same whoever carries it.

use std::time::{Duration, Instant};

use orch_run::{Ended, Target, TransportError};

use crate::remote::{Remote, RunAs};
use crate::ssh::tail;

/// How long a program that is told to end may take for it before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// The exit codes of `timeout`: the program ended when it was told to, or was killed.
const TIMED_OUT: [i32; 2] = [124, 137];

/// Runs a program on a node. It cannot be ended from here, so the node does: it runs under `timeout`, which ends it at the
/// limit even where the way to it is lost.
pub(crate) async fn exec(
    remote: &dyn Remote,
    target: &Target,
    argv: &[String],
    limit: Duration,
) -> Result<Ended, TransportError> {
    let begun = Instant::now();
    let ended = remote.run(&limited(argv, limit), RunAs::Itself, &[], limit + GRACE * 2).await?;
    if begun.elapsed() < limit || !ended.code.is_some_and(|code| TIMED_OUT.contains(&code)) {
        return Ok(ended);
    }
    let name = argv.first().map(|name| orch_model::printable(name).to_string()).unwrap_or_default();
    let why = format!("`{name}` did not end within {limit:?} and was ended");
    let evidence = tail(&String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()));
    Err(TransportError::Silent { node: target.identity.clone(), why, evidence })
}

/// The same program, ended by the node when its time is over.
fn limited(argv: &[String], limit: Duration) -> Vec<String> {
    let whole = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
    let guard = ["timeout".into(), "-k".into(), GRACE.as_secs().to_string(), whole.max(1).to_string()];
    guard.into_iter().chain(argv.iter().cloned()).collect()
}
