//! A report in words.

use std::fmt;

use orch_model::HostName;

use super::{GateReport, NodeReport, NodeStatus, Report, RunState};
use crate::leaks::Left;
use crate::log::one_line;

/// A line per node, then every failure with what happened, the evidence and what to try, then the counts. What
/// providers said is shown without what could move a terminal's cursor; the JSON has it as it was.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<&str> = self.hosts.iter().map(HostName::as_str).collect();
        writeln!(f, "{} {} on {} (run {})\n", self.verb, self.manifest, hosts.join(", "), self.run)?;
        let width = self.nodes.iter().map(|node| node.identity.node.as_str().len()).max().unwrap_or(0);
        for node in &self.nodes {
            write_node(f, node, width)?;
        }
        for node in self.nodes.iter().filter(|node| node.status == NodeStatus::Failed) {
            write_failure(f, node)?;
        }
        if !self.gates.is_empty() {
            writeln!(f)?;
        }
        self.gates.iter().try_for_each(|gate| write_gate(f, gate))?;
        write_left(f, &self.left)?;
        if let Some(error) = &self.journal_error {
            writeln!(f, "\nthe journal could not be written: {}", one_line(error))?;
        }
        write_summary(f, self)
    }
}

fn write_node(f: &mut fmt::Formatter<'_>, node: &NodeReport, width: usize) -> fmt::Result {
    let symbol = match node.status {
        NodeStatus::Changed => '~',
        NodeStatus::Unchanged => '=',
        NodeStatus::Failed => '!',
        NodeStatus::Skipped => '-',
        NodeStatus::Unfinished => '?',
    };
    let done = node.steps.iter().filter(|step| step.status == NodeStatus::Changed);
    let done: Vec<String> = done.map(|step| format!("{} {:.1}s", step.action, step.seconds)).collect();
    let why = if node.status == NodeStatus::Failed { String::new() } else { node.why.join(": ") };
    let failed = node.failed_step().map(|step| format!("{step} failed")).unwrap_or_default();
    let about = [why, done.join(", "), failed].into_iter().filter(|part| !part.is_empty());
    let about = about.collect::<Vec<_>>().join("; ");
    let (word, name) = (node.status.word(), node.identity.node.as_str());
    writeln!(f, "{}", format!("  {symbol} {word:10} {name:width$}  {}", one_line(&about)).trim_end())?;
    for note in node.steps.iter().filter_map(|step| step.note.as_ref()) {
        writeln!(f, "      note: {}", one_line(note))?;
    }
    match &node.hint {
        Some(hint) if node.status != NodeStatus::Failed => writeln!(f, "      hint: {}", one_line(hint)),
        _ => Ok(()),
    }
}

/// What happened, the last lines of what tells more, what to try.
fn write_failure(f: &mut fmt::Formatter<'_>, node: &NodeReport) -> fmt::Result {
    let step = node.failed_step().map(|step| format!("{step} ")).unwrap_or_default();
    writeln!(f, "\nfailed: {step}{}\n    {}", node.identity.node, one_line(&node.why.join(": ")))?;
    for line in &node.evidence {
        writeln!(f, "    | {}", one_line(line))?;
    }
    match &node.hint {
        Some(hint) => writeln!(f, "    try: {}", one_line(hint)),
        None => Ok(()),
    }
}

/// Whether the next batch was begun, and why not.
fn write_gate(f: &mut fmt::Formatter<'_>, gate: &GateReport) -> fmt::Result {
    let words = match (&gate.step.note, gate.is_open()) {
        (Some(note), true) => format!("open, {note}"),
        (None, true) => "open".to_owned(),
        (_, false) => format!("shut: {}", gate.why.join(": ")),
    };
    writeln!(f, "gate after batch {}: {}", gate.batch, one_line(&words))
}

/// What remains though it was to be gone.
fn write_left(f: &mut fmt::Formatter<'_>, left: &Left) -> fmt::Result {
    if !left.found.is_empty() {
        writeln!(f, "\nleft behind:")?;
    }
    if left.is_nothing() { Ok(()) } else { write!(f, "{left}") }
}

fn write_summary(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let plural = if report.nodes.len() == 1 { "" } else { "s" };
    write!(f, "\n{} node{plural}:", report.nodes.len())?;
    let shown = [
        NodeStatus::Changed,
        NodeStatus::Unchanged,
        NodeStatus::Failed,
        NodeStatus::Skipped,
        NodeStatus::Unfinished,
    ];
    let mut separator = " ";
    for status in shown {
        let count = report.count(status);
        if count > 0 {
            write!(f, "{separator}{count} {}", status.word())?;
            separator = ", ";
        }
    }
    write!(f, " · {:.1}s", report.duration().as_secs_f64())?;
    match (report.state, &report.paused, &report.aborted) {
        (RunState::Finished, _, Some(why)) => write!(f, " · ended early: {}", one_line(why)),
        (RunState::Finished, ..) if report.interrupted => f.write_str(" · interrupted"),
        (RunState::Finished, ..) => Ok(()),
        (RunState::Running, Some(paused), _) => {
            write!(f, " · paused by {} since {:.0}", one_line(&paused.by), paused.since)
        }
        (RunState::Running, None, _) => f.write_str(" · still running"),
        (RunState::Killed, ..) => f.write_str(" · killed; run again to heal what it left"),
    }
}
