//! What `orch-node` answers, and what that means.

use orch_model::system::Inventory;
use orch_model::{ApplyReport, ApplyStatus, Config, Inspection, KeyName, Lacking, NodeKeys};
use orch_run::told::{failures, skipped};
use orch_run::{Configured, Ended, Target, TransportError};
use serde::de::DeserializeOwned;

use super::Part;
use super::program::NOT_FOUND;

/// The exit code of a node that lacks secrets, and did nothing for want of them.
pub(super) const LACKS: i32 = 6;

/// The exit code of a node that did not get done within the limit.
pub(super) const LIMIT_REACHED: i32 = 4;

/// How many lines of evidence are kept.
const EVIDENCE: usize = 12;

/// What became of a push.
pub(super) fn configured(
    ended: &Ended,
    target: &Target,
    config: &Config,
    part: Part,
) -> Result<Configured, TransportError> {
    let mut lines = ended.stdout.split(|byte| *byte == b'\n');
    let report: ApplyReport = first(&mut lines).ok_or_else(|| no_answer(ended, target))?;
    let failed = |why, evidence| TransportError::Failed { node: target.identity.clone(), why, evidence };
    if report.spec_digest != config.digest() || report.node != config.node {
        let why = format!("it answered for another configuration, of `{}`", report.node);
        return Err(failed(why, tail(&ended.stderr)));
    }
    if report.status == ApplyStatus::Failed {
        return Err(failed(what_failed(&report), with_stderr(failures(&report), ended)));
    }
    // Whether it is healthy shows when its system runs.
    if part == Part::Whole && report.health.len() < config.role.health.len() {
        let why = "it was configured, and did not say whether it is healthy".into();
        return Err(failed(why, tail(&ended.stderr)));
    }
    let keys = keys(ended, target).ok();
    Ok(Configured { changed: report.changed(), notes: skipped(&report.resources), keys })
}

/// By what a node says it is known.
pub(super) fn keys(ended: &Ended, target: &Target) -> Result<NodeKeys, TransportError> {
    let mut lines = ended.stdout.split(|byte| *byte == b'\n');
    first(&mut lines).ok_or_else(|| no_answer(ended, target))
}

/// The secrets that a node says it lacks, and to whom they are encrypted.
pub(super) fn lacking(ended: &Ended, target: &Target) -> Result<(NodeKeys, Vec<KeyName>), TransportError> {
    let mut lines = ended.stdout.split(|byte| *byte == b'\n');
    let lacking: Lacking = first(&mut lines).ok_or_else(|| no_answer(ended, target))?;
    Ok((keys(ended, target)?, lacking.lacking))
}

/// What was seen by looking.
pub(super) fn inspection(ended: &Ended, target: &Target) -> Result<Inspection, TransportError> {
    let mut lines = ended.stdout.split(|byte| *byte == b'\n');
    first(&mut lines).ok_or_else(|| no_answer(ended, target))
}

/// What a node's system is made of.
pub(super) fn inventory(ended: &Ended, target: &Target) -> Result<Inventory, TransportError> {
    let mut lines = ended.stdout.split(|byte| *byte == b'\n');
    first(&mut lines).ok_or_else(|| no_answer(ended, target))
}

/// The first line of an output that is such an answer.
pub(crate) fn said<T: DeserializeOwned>(ended: &Ended) -> Option<T> {
    first(&mut ended.stdout.split(|byte| *byte == b'\n'))
}

/// The next line that is such an answer.
fn first<'a, T: DeserializeOwned>(lines: &mut impl Iterator<Item = &'a [u8]>) -> Option<T> {
    lines.find_map(|line| serde_json::from_slice(line).ok())
}

/// A program that ended without an answer.
fn no_answer(ended: &Ended, target: &Target) -> TransportError {
    let (node, evidence) = (target.identity.clone(), tail(&ended.stderr));
    let why = match ended.code {
        Some(LIMIT_REACHED) => {
            let why = "it was still at it when its time was over, and was told to stop".into();
            return TransportError::Late { node, why, evidence };
        }
        Some(LACKS) => "it still lacks secrets that it was given".to_owned(),
        Some(NOT_FOUND) => "the program that configures it is not there yet".to_owned(),
        Some(code) => format!("the program that configures it ended with code {code} and no answer"),
        None => "the program that configures it was killed".to_owned(),
    };
    TransportError::Failed { node, why, evidence }
}

/// The words for a configuration that could not be made true.
fn what_failed(report: &ApplyReport) -> String {
    let error = report.error.as_deref().unwrap_or("it did not say why");
    orch_model::printable(error).into_owned()
}

fn with_stderr(mut evidence: Vec<String>, ended: &Ended) -> Vec<String> {
    let lines = tail(&ended.stderr);
    let room = EVIDENCE.saturating_sub(evidence.len());
    let from = lines.len().saturating_sub(room);
    evidence.extend_from_slice(&lines[from..]);
    evidence
}

/// The last lines of an output, fit to be shown.
pub(crate) fn tail(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(EVIDENCE);
    lines[from..].iter().map(|line| orch_model::printable(line).into_owned()).collect()
}
