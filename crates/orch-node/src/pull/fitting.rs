//! A result that the server can take: it takes a bounded number of bytes, and a result that is dropped for its size would
//! leave whoever waits for it without any. The node itself keeps all of it.

use orch_model::pull::NodeResult;
use orch_model::{HealthReport, ResourceReport};

/// The server takes 1 MiB; what is around the result has its place too.
const LARGEST: usize = 900 << 10;
/// As much of a text says what it is about.
const LONGEST_DETAIL: usize = 200;
const LONGEST_ERROR: usize = 4000;

/// The result as it is, or as much of it as fits: first texts are cut, then what is simply as it was goes, then half of
/// what is left.
pub(super) fn fitting(mut result: NodeResult) -> NodeResult {
    if fits(&result) {
        return result;
    }
    cut(&mut result.report.error, LONGEST_ERROR);
    let NodeResult { report, drift, .. } = &mut result;
    for ResourceReport { detail, skipped, .. } in report.resources.iter_mut().chain(drift) {
        cut(detail, LONGEST_DETAIL);
        cut(skipped, LONGEST_DETAIL);
    }
    for HealthReport { why, .. } in &mut report.health {
        cut(why, LONGEST_DETAIL);
    }
    if !fits(&result) {
        result.report.resources.retain(|resource| resource.changed || resource.detail.is_some());
    }
    while !fits(&result) && has_more(&result) {
        let NodeResult { report, drift, .. } = &mut result;
        report.resources.truncate(report.resources.len() / 2);
        report.health.truncate(report.health.len() / 2);
        drift.truncate(drift.len() / 2);
    }
    result
}

fn fits(result: &NodeResult) -> bool {
    serde_json::to_vec(result).is_ok_and(|bytes| bytes.len() <= LARGEST)
}

fn has_more(result: &NodeResult) -> bool {
    let NodeResult { report, drift, .. } = result;
    !(report.resources.is_empty() && report.health.is_empty() && drift.is_empty())
}

fn cut(text: &mut Option<String>, length: usize) {
    if let Some(text) = text {
        let end = text.char_indices().nth(length).map(|(end, _)| end);
        if let Some(end) = end {
            text.truncate(end);
            text.push('…');
        }
    }
}

#[cfg(test)]
mod tests {
    use orch_model::{ApplyReport, ApplyStatus, Digest, Mode};

    use super::*;

    fn resource(name: String, changed: bool, detail: &str) -> ResourceReport {
        let detail = (!detail.is_empty()).then(|| detail.into());
        ResourceReport { kind: "file".into(), name, changed, skipped: None, detail }
    }

    fn result(resources: Vec<ResourceReport>, error: &str) -> NodeResult {
        let report = ApplyReport {
            phase: "config".into(),
            status: ApplyStatus::Failed,
            node: "test.web@here".parse().unwrap(),
            spec: "base".parse().unwrap(),
            spec_digest: Digest::of_bytes(b""),
            mode: Mode::Pull,
            started_at: String::new(),
            finished_at: String::new(),
            attempts: 1,
            resources,
            health: Vec::new(),
            error: Some(error.into()),
        };
        NodeResult { report, drift: Vec::new(), owed: false, clock: 0 }
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let small = result(vec![resource("/a".into(), false, "")], "ö");
        assert_eq!(fitting(small.clone()), small);
    }

    #[test]
    fn what_does_not_fit_keeps_what_matters_most() {
        let long =
            fitting(result(vec![resource("/a".into(), true, &"ö".repeat(1 << 20))], &"e".repeat(1 << 20)));
        assert_eq!(long.report.resources.len(), 1);
        assert_eq!(long.report.error.unwrap().chars().count(), LONGEST_ERROR + 1);
        let many = (0..40_000).map(|number| resource(format!("/many/{number}"), number == 7, "")).collect();
        let many = fitting(result(many, ""));
        assert_eq!(many.report.resources.len(), 1, "what is simply as it was goes first");
        let all = (0..400).map(|_| resource("x".repeat(1 << 16), true, "")).collect();
        let all = fitting(result(all, ""));
        assert!(fits(&all) && !all.report.resources.is_empty());
    }
}
