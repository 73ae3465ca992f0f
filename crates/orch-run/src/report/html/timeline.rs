//! When each step ran, as bars: one sees what ran at once, and what waited for what.

use super::super::{NodeStatus, Report, StepReport};
use super::escape::escaped;

/// How many parts the time axis is divided into, at most.
const TICKS: f64 = 8.0;

/// How far along the axis its last mark may be, so that the words beside it have room.
const LAST_TICK: f64 = 0.96;

/// Rows of bars over time; nothing where no step ran.
pub(super) fn of(report: &Report) -> String {
    let rows = rows(report);
    let spans: Vec<(f64, f64)> =
        rows.iter().flat_map(Row::ran).map(|(start, step)| (start, start + step.seconds)).collect();
    let end = spans.iter().map(|(_, end)| *end).fold(0.0, f64::max);
    if spans.is_empty() || end <= 0.0 {
        return String::new();
    }
    let at_once = match most_at_once(&spans) {
        1 => "one at a time".to_owned(),
        several => format!("up to {several} at once"),
    };
    let work: f64 = spans.iter().map(|(start, end)| end - start).sum();
    let bars: String = rows.iter().map(|of| row(of, end)).collect();
    format!(
        "<section>\n<h3>Timeline</h3>\n<p class=\"lead\">{} steps, {at_once}: {work:.1}s of work in {end:.1}s</p>\n\
         <div class=\"timeline\">\n{}{bars}</div>\n{}</section>\n",
        spans.len(),
        axis(end),
        legend(&rows)
    )
}

/// A node, or a gate, with its steps.
struct Row<'r> {
    name: String,
    steps: &'r [StepReport],
}

impl Row<'_> {
    /// The steps that were begun, each with when.
    fn ran(&self) -> impl Iterator<Item = (f64, &StepReport)> {
        self.steps.iter().filter_map(|step| step.started.map(|started| (started, step)))
    }
}

/// Every node and every gate of which something was begun: a gate stands after the last node of its batch.
fn rows(report: &Report) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for node in &report.nodes {
        let name = &node.identity.node;
        rows.push(Row { name: name.to_string(), steps: &node.steps });
        for gate in report.gates.iter().filter(|gate| gate.nodes.last() == Some(name)) {
            let name = format!("gate {}", gate.batch);
            rows.push(Row { name, steps: std::slice::from_ref(&gate.step) });
        }
    }
    rows.retain(|row| row.ran().next().is_some());
    rows
}

fn row(row: &Row<'_>, end: f64) -> String {
    let bars: String = row.ran().map(|(start, step)| bar(start, step, end)).collect();
    let name = escaped(&row.name);
    format!(
        "<div class=\"row\"><span class=\"name\" title=\"{name}\">{name}</span><div class=\"track\">{bars}</div></div>\n"
    )
}

fn bar(start: f64, step: &StepReport, end: f64) -> String {
    let (left, width) = (100.0 * start / end, 100.0 * step.seconds / end);
    let failed = if step.status == NodeStatus::Failed { " failed" } else { "" };
    let about = format!("{} {:.1}s, from {start:.1}s, {}", step.action, step.seconds, step.status.word());
    format!(
        "<i class=\"{}{failed}\" style=\"left:{left:.3}%;width:{width:.3}%\" title=\"{about}\"></i>",
        step.action
    )
}

fn axis(end: f64) -> String {
    let step = round_step(end / TICKS);
    let ticks =
        std::iter::successors(Some(0.0), |tick| Some(tick + step)).take_while(|tick| *tick < LAST_TICK * end);
    let digits = if step < 0.1 { 2 } else { usize::from(step < 1.0) };
    let ticks =
        ticks.map(|tick| format!("<span style=\"left:{:.3}%\">{tick:.digits$}s</span>", 100.0 * tick / end));
    format!(
        "<div class=\"row axis\"><span class=\"name\"></span><div class=\"track\">{}</div></div>\n",
        ticks.collect::<String>()
    )
}

/// The next of 1, 2, 5 times a power of ten: steps that people count in.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least);
    factor.unwrap_or(10.0) * power
}

fn legend(rows: &[Row<'_>]) -> String {
    let mut actions: Vec<&str> = Vec::new();
    for (_, step) in rows.iter().flat_map(Row::ran) {
        if !actions.contains(&step.action) {
            actions.push(step.action);
        }
    }
    let shown = actions.iter().map(|action| format!("<span><i class=\"{action}\"></i>{action}</span>"));
    format!("<p class=\"legend\">{}</p>\n", shown.collect::<String>())
}

/// How many spans overlap where most do.
fn most_at_once(spans: &[(f64, f64)]) -> usize {
    let overlapping = |at: f64| spans.iter().filter(|(start, end)| *start <= at && at < *end).count();
    spans.iter().map(|(start, _)| overlapping(*start)).max().unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_counted_and_what_follows_is_not() {
        let cases: [(&[(f64, f64)], usize); 5] = [
            (&[(0.0, 1.0)], 1),
            (&[(0.0, 1.0), (1.0, 2.0)], 1),
            (&[(0.0, 1.0), (0.5, 2.0)], 2),
            (&[(0.0, 5.0), (1.0, 2.0), (1.5, 3.0), (4.0, 5.0)], 3),
            (&[(0.0, 0.0)], 1),
        ];
        for (spans, expected) in cases {
            assert_eq!(most_at_once(spans), expected, "{spans:?}");
        }
    }

    #[test]
    fn the_axis_is_divided_as_people_count() {
        for (least, expected) in
            [(0.013, 0.02), (0.6, 1.0), (1.2, 2.0), (3.0, 5.0), (7.0, 10.0), (60.0, 100.0)]
        {
            assert!((round_step(least) - expected).abs() < 1e-9, "{least} gives {}", round_step(least));
        }
    }
}
