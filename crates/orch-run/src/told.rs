//! What a node's report says, in words for people.

use std::collections::BTreeMap;

use jiff::Timestamp;
use orch_model::{ApplyReport, ResourceReport};

/// How many lines are told.
const EVIDENCE: usize = 12;

/// What is told of the resources that are neither as wanted nor skipped.
pub fn failures(report: &ApplyReport) -> Vec<String> {
    let resources =
        report.resources.iter().filter(|resource| !resource.changed && resource.skipped.is_none());
    let told = resources.filter_map(|resource| Some((resource, resource.detail.as_deref()?)));
    let words = told.map(|(resource, detail)| format!("{} {}: {detail}", resource.kind, resource.name));
    words.map(|line| orch_model::printable(&line).into_owned()).take(EVIDENCE).collect()
}

/// What was skipped, with one note for each reason: `skipped: package htop, package vim (not installable here)`.
pub fn skipped(resources: &[ResourceReport]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for resource in resources {
        if let Some(reason) = &resource.skipped {
            reasons.entry(reason).or_default().push(format!("{} {}", resource.kind, resource.name));
        }
    }
    let notes = reasons.iter().map(|(reason, names)| format!("skipped: {} ({reason})", names.join(", ")));
    notes.map(|note| orch_model::printable(&note).into_owned()).collect()
}

/// A moment, in seconds since 1970, as people write it.
pub fn moment(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    at.map_or_else(|| "at some time".to_owned(), |at| format!("{at:.0}"))
}
