//! What nodes said they are, as a table.

use orch_model::ResourceReport;

use super::escape::escaped;
use crate::status::{NodeCondition, NodeStanding, Standing};

/// A row for each node, in the fleet's order.
pub(super) fn table(standing: &Standing) -> String {
    let rows: String = standing.nodes.iter().map(row).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr><th>node</th><th>is</th><th>health</th><th>remarks</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn row(node: &NodeStanding) -> String {
    let word = node.condition.word();
    let class = match node.condition {
        NodeCondition::AsWanted => "good",
        condition if condition.is_broken() => "bad",
        _ => "mixed",
    };
    let healthy = node.health.iter().filter(|check| check.healthy).count();
    let health =
        if node.health.is_empty() { String::new() } else { format!("{healthy} of {}", node.health.len()) };
    let remarks = remarks(node)
        .iter()
        .map(|remark| format!("<div>{}</div>", escaped(remark)))
        .collect::<Vec<_>>()
        .concat();
    format!(
        "<tr><td><b>{}</b> <small>{}</small></td><td><span class=\"badge {class}\">{word}</span></td><td>{health}</td><td>{remarks}</td></tr>\n",
        escaped(node.identity.node.as_str()),
        escaped(node.identity.host.as_str()),
    )
}

fn remarks(node: &NodeStanding) -> Vec<String> {
    let told = |resource: &ResourceReport, what: &str| format!("{} {}: {what}", resource.kind, resource.name);
    let drift =
        node.drift.iter().map(|resource| told(resource, resource.detail.as_deref().unwrap_or("differs")));
    let skipped =
        node.skipped.iter().map(|resource| told(resource, resource.skipped.as_deref().unwrap_or_default()));
    let ill = node.health.iter().filter(|check| !check.healthy);
    let ill =
        ill.map(|check| format!("{}: {}", check.check, check.why.as_deref().unwrap_or("does not pass")));
    let unreached = node.why.iter().cloned().chain(node.hint.iter().map(|hint| format!("try: {hint}")));
    unreached.chain(node.differs.iter().cloned()).chain(drift).chain(ill).chain(skipped).collect()
}
