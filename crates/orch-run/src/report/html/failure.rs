//! Every failure: what happened, the evidence, what to try.

use super::super::{NodeReport, NodeStatus, Report};
use super::escape::escaped;

/// A card for each node that failed; nothing where none did.
pub(super) fn all(report: &Report) -> String {
    let failed = report.nodes.iter().filter(|node| node.status == NodeStatus::Failed);
    let cards: String = failed.map(card).collect();
    if cards.is_empty() { cards } else { format!("<section>\n<h3>What went wrong</h3>\n{cards}</section>\n") }
}

fn card(node: &NodeReport) -> String {
    let step =
        node.failed_step().map(|step| format!(" <span class=\"step\">{step}</span>")).unwrap_or_default();
    let why: Vec<String> = node.why.iter().map(|why| escaped(why)).collect();
    let evidence: Vec<String> = node.evidence.iter().map(|line| escaped(line)).collect();
    let evidence = match evidence.as_slice() {
        [] => String::new(),
        lines => format!("<pre>{}</pre>\n", lines.join("\n")),
    };
    let hint = node.hint.as_deref().map(escaped);
    let hint = hint.map(|hint| format!("<p class=\"hint\"><b>Try</b> {hint}</p>\n")).unwrap_or_default();
    format!(
        "<article class=\"failure\">\n<h4>{}{step}</h4>\n<p>{}</p>\n{evidence}{hint}</article>\n",
        escaped(node.identity.node.as_str()),
        why.join(": ")
    )
}
