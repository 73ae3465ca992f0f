//! How busy a run kept its lanes, by the times of its steps.

use std::time::Duration;

use serde_json::Value as Json;

use crate::site::PARALLELISM;

/// How busy the lanes of a run were while there was something left to begin.
pub(crate) struct Lanes {
    /// The part of their time in which they were busy.
    pub(crate) busy: f64,
    /// The longest time in which one of them was idle.
    pub(crate) longest_gap: Duration,
}

impl Lanes {
    /// By a run's report. Each step goes to the lane that was free first, as it did.
    pub(crate) fn of(report: &Json) -> Self {
        let nodes = report["nodes"].as_array().unwrap();
        let steps = nodes.iter().flat_map(|node| node["steps"].as_array().unwrap());
        let span = |step: &Json| {
            let started = step["started"].as_f64()?;
            Some((started, started + step["seconds"].as_f64()?))
        };
        let mut steps: Vec<(f64, f64)> = steps.filter_map(span).collect();
        steps.sort_by(|one, other| one.0.total_cmp(&other.0));
        let first = steps.first().map_or(0.0, |step| step.0);
        let last_begun = steps.last().map_or(0.0, |step| step.0);
        let mut free = vec![first; PARALLELISM.min(steps.len())];
        let (mut busy, mut longest) = (0.0, 0.0_f64);
        for (start, end) in steps {
            let lane = free.iter_mut().min_by(|one, other| one.total_cmp(other)).unwrap();
            longest = longest.max(start - *lane);
            busy += end.min(last_begun) - start;
            *lane = end;
        }
        let lanes = f64::from(u32::try_from(free.len()).unwrap());
        let all = (last_begun - first) * lanes;
        // Where everything was begun at once, nobody ever waited for a lane.
        let busy = if all > f64::EPSILON { busy / all } else { 1.0 };
        Self { busy, longest_gap: Duration::from_secs_f64(longest.max(0.0)) }
    }
}
