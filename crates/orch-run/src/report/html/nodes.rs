//! The table of nodes.

use super::super::{NodeReport, Report, StepReport};
use super::escape::escaped;

/// A row for each node, in the plan's order.
pub(super) fn table(report: &Report) -> String {
    let rows: String = report.nodes.iter().map(row).collect();
    format!(
        "<section>\n<h3>Nodes</h3>\n<div class=\"wide\"><table>\n\
         <thead><tr><th>node</th><th>status</th><th>steps</th><th>remarks</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n</section>\n"
    )
}

fn row(node: &NodeReport) -> String {
    let word = node.status.word();
    let steps: Vec<String> = node.steps.iter().map(step).collect();
    let notes = node.steps.iter().filter_map(|step| step.note.as_deref());
    let remarks = [node.why.join(": ")].into_iter().filter(|why| !why.is_empty());
    let remarks =
        remarks.chain(notes.map(str::to_owned)).chain(node.hint.iter().map(|hint| format!("try: {hint}")));
    let remarks: Vec<String> = remarks.map(|remark| format!("<div>{}</div>", escaped(&remark))).collect();
    format!(
        "<tr><td><b>{}</b> <small>{}</small></td><td><span class=\"badge {word}\">{word}</span></td><td>{}</td><td>{}</td></tr>\n",
        escaped(node.identity.node.as_str()),
        escaped(node.identity.host.as_str()),
        steps.join("<br>"),
        remarks.concat()
    )
}

fn step(step: &StepReport) -> String {
    if step.started.is_none() {
        return format!("{} <small>{}</small>", step.action, step.status.word());
    }
    let tries = if step.attempts > 1 { format!(", {} tries", step.attempts) } else { String::new() };
    format!("{} <small>{:.1}s{tries}</small>", step.action, step.seconds)
}
