//! A standing in words.

use std::collections::BTreeMap;
use std::fmt;

use orch_model::{ApplyStatus, HostName, NodeRecord, ResourceReport};

use super::{ConfigState, NodeCondition, NodeStanding, NodeState, Standing};
use crate::log::one_line;
use crate::told::moment;

/// By how many seconds a clock may be wrong before it is worth a word.
const SKEW: u64 = 5;

/// In the order in which they are counted.
const CONDITIONS: [NodeCondition; 11] = [
    NodeCondition::AsWanted,
    NodeCondition::Drifted,
    NodeCondition::Differs,
    NodeCondition::Alarmed,
    NodeCondition::Unhealthy,
    NodeCondition::Unreachable,
    NodeCondition::Stopped,
    NodeCondition::Unfinished,
    NodeCondition::Missing,
    NodeCondition::Stranger,
    NodeCondition::Unseen,
];

/// A line per node, with what differs below it, then the counts. What is less than was asked for is not the nodes' doing,
/// and is left to whoever prints this.
impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<&str> = self.hosts.iter().map(HostName::as_str).collect();
        writeln!(f, "{} on {} (site {})\n", self.manifest, hosts.join(", "), self.site)?;
        let names = self.nodes.iter().map(|node| node.identity.node.as_str());
        let names = names.chain(self.leftovers.iter().map(|leftover| leftover.node.as_str()));
        let width = names.map(str::len).max().unwrap_or(0);
        for node in &self.nodes {
            write_node(f, node, width)?;
        }
        for leftover in &self.leftovers {
            let (node, machine) = (leftover.node.as_str(), one_line(&leftover.machine));
            writeln!(
                f,
                "  ? left over    {node:width$}  `{machine}` is no longer described; `destroy --only {node}` removes it"
            )?;
        }
        write_counts(f, self)?;
        write_hints(f, self)
    }
}

fn write_node(f: &mut fmt::Formatter<'_>, node: &NodeStanding, width: usize) -> fmt::Result {
    let (symbol, word) = (symbol(node.condition), node.condition.word());
    let line = format!("  {symbol} {word:12} {:width$}  {}", node.identity.node.as_str(), about(node));
    writeln!(f, "{}", line.trim_end())?;
    if let Some(why) = &node.why {
        writeln!(f, "      why       {}", one_line(why))?;
    }
    if let Some(record) = &node.pull {
        write_pull(f, record)?;
    }
    for reason in node.differs.iter().filter(|reason| *reason != word) {
        writeln!(f, "      differs   {}", one_line(reason))?;
    }
    for resource in &node.drift {
        writeln!(f, "      drift     {}", told(resource))?;
    }
    for check in node.health.iter().filter(|check| !check.healthy) {
        let why = check.why.as_deref().unwrap_or("does not pass");
        writeln!(f, "      health    {}: {}", one_line(&check.check), one_line(why))?;
    }
    for (what, why) in skipped(&node.skipped) {
        writeln!(f, "      skipped   {what}: {why}")?;
    }
    for line in &node.evidence {
        writeln!(f, "      | {}", one_line(line))?;
    }
    match &node.hint {
        Some(hint) => writeln!(f, "      hint: {}", one_line(hint)),
        None => Ok(()),
    }
}

/// What the server knows of a node that fetches its configuration.
fn write_pull(f: &mut fmt::Formatter<'_>, record: &NodeRecord) -> fmt::Result {
    let fetched =
        record.fetched.map_or_else(|| "never fetched".to_owned(), |at| format!("fetched {}", moment(at.at)));
    let reported = record.reported.as_ref().map_or_else(
        || "never reported".to_owned(),
        |reported| {
            let report = &reported.result.report;
            let status = if report.status == ApplyStatus::Complete { "complete" } else { "failed" };
            let wanted = record.wanted.filter(|wanted| *wanted != report.spec_digest);
            let wanted = wanted.map(|wanted| format!(", wanted is {}", wanted.short())).unwrap_or_default();
            format!("reported {status} {} ({}{wanted})", moment(reported.at), report.spec_digest.short())
        },
    );
    writeln!(f, "      pull      {fetched}, {reported}")?;
    let skew = record.reported.as_ref().map_or(0, |reported| reported.skew);
    if skew.unsigned_abs() > SKEW {
        writeln!(
            f,
            "      clock     {}s {}",
            skew.unsigned_abs(),
            if skew > 0 { "ahead" } else { "behind" }
        )?;
    }
    if let Some(reported) = record.reported.as_ref().filter(|reported| !reported.result.drift.is_empty()) {
        let names = reported.result.drift.iter().map(|drift| format!("{} {}", drift.kind, drift.name));
        writeln!(f, "      mended    {}", one_line(&names.collect::<Vec<_>>().join(", ")))?;
    }
    if let Some(refused) = &record.refused {
        writeln!(
            f,
            "      refused   {} with {}; `orch config` gives it new tokens",
            moment(refused.at),
            refused.code
        )?;
    }
    if let Some(alarm) = record.alarm {
        writeln!(
            f,
            "      ALARM     token {} was shown {}, after it was used up: somebody else may have it",
            alarm.id,
            moment(alarm.at)
        )?;
        writeln!(
            f,
            "      hint: `orch token revoke {}` makes its tokens worthless, `orch config` gives it new ones",
            record.node
        )?;
    }
    match &record.trouble {
        Some(trouble) => writeln!(f, "      server    {}", one_line(trouble)),
        None => Ok(()),
    }
}

/// `running, configuration current, healthy`.
fn about(node: &NodeStanding) -> String {
    let state = match node.state {
        NodeState::Running => "running",
        NodeState::Stopped => "switched off",
        NodeState::Partial => "an interrupted run began to make it",
        NodeState::Doubled => "several machines bear its mark",
        NodeState::Missing => return "it does not exist".to_owned(),
        NodeState::Stranger => return "it does not exist, and another's machine has its name".to_owned(),
        NodeState::Unseen => return "its host cannot be looked at".to_owned(),
    };
    let config = match node.config {
        ConfigState::Current => Some("configuration current"),
        ConfigState::Other => Some("another configuration"),
        ConfigState::Never => Some("never configured"),
        ConfigState::Unknown => Some("configuration unknown"),
        ConfigState::Unwanted => None,
    };
    let is_healthy = !node.health.is_empty() && node.health.iter().all(|check| check.healthy);
    let health = is_healthy.then_some("healthy");
    [Some(state), config, health].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn told(resource: &ResourceReport) -> String {
    let what = format!("{} {}", resource.kind, resource.name);
    let detail = resource.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    one_line(&format!("{what}{detail}"))
}

/// What is skipped for one reason is told once: `package curl, htop`.
fn skipped(resources: &[ResourceReport]) -> Vec<(String, String)> {
    let mut grouped: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for resource in resources {
        let why = resource.skipped.as_deref().unwrap_or_default();
        grouped.entry((&resource.kind, why)).or_default().push(&resource.name);
    }
    let told = |((kind, why), names): ((&str, &str), Vec<&str>)| {
        (one_line(&format!("{kind} {}", names.join(", "))), one_line(why))
    };
    grouped.into_iter().map(told).collect()
}

fn write_counts(f: &mut fmt::Formatter<'_>, standing: &Standing) -> fmt::Result {
    let plural = if standing.nodes.len() == 1 { "" } else { "s" };
    write!(f, "\n{} node{plural}:", standing.nodes.len())?;
    let mut separator = " ";
    for condition in CONDITIONS {
        let count = standing.count(condition);
        if count > 0 {
            write!(f, "{separator}{count} {}", condition.word())?;
            separator = ", ";
        }
    }
    if !standing.leftovers.is_empty() {
        write!(f, " · {} left over", standing.leftovers.len())?;
    }
    Ok(())
}

/// The verbs that mend what is amiss.
fn write_hints(f: &mut fmt::Formatter<'_>, standing: &Standing) -> fmt::Result {
    use NodeCondition::{Differs, Drifted, Missing, Stopped, Stranger, Unfinished};
    let has =
        |conditions: &[NodeCondition]| conditions.iter().any(|condition| standing.count(*condition) > 0);
    if has(&[Drifted]) {
        f.write_str("\nhint: `orch config` mends what has drifted")?;
    }
    if has(&[Missing, Stopped, Stranger, Unfinished, Differs]) {
        f.write_str("\nhint: `orch create` makes, starts and changes what is not as wanted")?;
    }
    Ok(())
}

const fn symbol(condition: NodeCondition) -> char {
    match condition {
        NodeCondition::AsWanted => '=',
        NodeCondition::Drifted | NodeCondition::Differs => '~',
        NodeCondition::Unseen => '?',
        _ => '!',
    }
}
