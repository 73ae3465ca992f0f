//! A fetch that failed, in the shape of every other report.
//!
//! It had no configuration, so its digest is all zeros, and no apply of a configuration counts it as a try of its own.
//!
//! Where the server refused, the node is no longer known to be what it should be: the report takes the place of the last
//! one. Where nobody was heard, or whoever was heard had no time, the node is still what it was: then what became of its
//! last configuration stays, `complete.json` too, and the failure is kept only where nothing was ever applied. The
//! next fetch that succeeds finds its configuration made true, and does not apply it once more.

use orch_model::pull::Enrolment;
use orch_model::token;
use orch_model::{ApplyReport, ApplyStatus, Digest, SpecName};

use super::client::CallError;
use crate::error::{ApplyError, in_full};
use crate::state::{ApplyLock, State};

/// The report of a fetch that failed.
pub(super) fn report(
    state: &State,
    enrolment: &Enrolment,
    (error, tries): (&CallError, u32),
) -> Result<ApplyReport, ApplyError> {
    let now = jiff::Timestamp::now().to_string();
    let mut words = in_full(error);
    if error.may_pass() {
        words.push_str(&format!(" (asked {tries} times at {})", enrolment.server));
    }
    Ok(ApplyReport {
        phase: "config".into(),
        status: ApplyStatus::Failed,
        node: enrolment.node.clone(),
        spec: spec(state, enrolment),
        spec_digest: Digest::NONE,
        mode: enrolment.mode,
        started_at: now.clone(),
        finished_at: now,
        attempts: state.attempts(Digest::NONE)?,
        resources: Vec::new(),
        health: Vec::new(),
        error: Some(words),
    })
}

/// The spec that the node becomes, as far as it knows: what it has become, or what its first token says.
fn spec(state: &State, enrolment: &Enrolment) -> SpecName {
    let known = state.config().filter(|config| config.node == enrolment.node).map(|config| config.spec);
    let said = || token::read(enrolment.token.expose()).ok().map(|claims| claims.s);
    known.or_else(said).unwrap_or_else(|| "unknown".parse().expect("this is a name"))
}

/// Keeps the report, unless what is there says more of the node.
pub(super) fn keep(state: &State, report: &ApplyReport, error: &CallError) -> Result<(), ApplyError> {
    // Whoever applies at this moment writes down what comes of it.
    let Some(_lock) = ApplyLock::try_take(state)? else { return Ok(()) };
    let is_still_what_it_was =
        error.may_pass() && state.report()?.is_some_and(|last| last.spec_digest != Digest::NONE);
    if is_still_what_it_was { Ok(()) } else { state.keep(report) }
}
