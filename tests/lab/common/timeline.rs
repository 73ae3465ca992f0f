//! When the steps of a run began and ended, as its report says.

use serde_json::Value as Json;

use super::{Lab, assert_nothing_is_left};

/// The steps of a run.
pub(crate) struct Timeline(Vec<Span>);

/// One step, in seconds from the beginning of the run.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    node: String,
    action: String,
    began: f64,
    ended: f64,
}

impl Timeline {
    /// Reads a report.
    pub(crate) fn of(report: &Json) -> Self {
        let nodes = report["nodes"].as_array().unwrap();
        Self(nodes.iter().flat_map(spans).collect())
    }

    /// A step of a node.
    #[track_caller]
    pub(crate) fn step(&self, node: &str, action: &str) -> &Span {
        let found = self.0.iter().find(|span| span.node == node && span.action == action);
        assert!(found.is_some(), "the report has no `{action}` of `{node}`: {:#?}", self.0);
        found.unwrap()
    }

    /// Every step of this kind.
    pub(crate) fn all(&self, action: &str) -> Vec<&Span> {
        self.0.iter().filter(|span| span.action == action).collect()
    }

    /// Asserts that each of these steps ended before the next began.
    #[track_caller]
    pub(crate) fn assert_in_order(&self, steps: &[(&str, &str)]) {
        for pair in steps.windows(2) {
            let [first, then] = [0, 1].map(|index| self.step(pair[index].0, pair[index].1));
            assert!(first.ended <= then.began, "{first:?} is over before {then:?} begins");
        }
    }
}

impl Span {
    /// Whether both were under way at some moment.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.began < other.ended && other.began < self.ended
    }
}

/// How many steps were under way at the busiest moment.
pub(crate) fn most_at_once(spans: &[&Span]) -> usize {
    let under_way = |at: f64| spans.iter().filter(|span| span.began <= at && at < span.ended).count();
    spans.iter().map(|span| under_way(span.began)).max().unwrap_or(0)
}

fn spans(node: &Json) -> Vec<Span> {
    let name = name_of(node);
    let steps = node["steps"].as_array().into_iter().flatten();
    let span = |step: &Json| {
        let began = step["started"].as_f64()?;
        let ended = began + step["seconds"].as_f64()?;
        Some(Span { node: name.clone(), action: step["action"].as_str()?.to_owned(), began, ended })
    };
    steps.filter_map(span).collect()
}

/// The name of a node of a report or a status.
pub(crate) fn name_of(node: &Json) -> String {
    let identity = node["identity"].as_str().unwrap();
    let (_, rest) = identity.split_once('.').unwrap();
    rest.split_once('@').unwrap().0.to_owned()
}

/// Destroys a manifest on the host `father`, and once more, which changes nothing: nothing is left then. What happened when.
#[track_caller]
pub(crate) fn destroy_twice(lab: &Lab, manifest: &str) -> Timeline {
    let words = format!("destroy -M {manifest} -H father --yes --json");
    let first = lab.orch(&words).ends_with(0).every_node_is("changed");
    lab.orch(&words).ends_with(0).every_node_is("unchanged");
    assert_nothing_is_left(lab);
    Timeline::of(&first.json())
}
