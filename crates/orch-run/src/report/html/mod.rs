//! A run as one page that needs nothing but itself: no script, no font, no picture from elsewhere. Whatever came from
//! outside is escaped.

mod escape;
mod failure;
mod nodes;
mod standing;
mod timeline;

use orch_model::HostName;

use self::escape::escaped;
use super::{ExitCode, NodeStatus, Report, RunState};
use crate::trial::{Phase, TrialReport};

const STYLE: &str = include_str!("style.css");

impl Report {
    /// The run as one self-contained HTML page: a summary, a timeline, every failure with its evidence, every node.
    pub fn html(&self) -> String {
        let title = title(self);
        page(&title, &header(&title, self.exit_code, &facts(self)), &section(self))
    }
}

impl TrialReport {
    /// The trial as one self-contained HTML page, with its phases one below the other.
    pub fn html(&self) -> String {
        let title = self.phases.iter().find_map(|phase| match phase {
            Phase::Create { report } => Some(format!("test {} on {}", report.manifest, hosts(&report.hosts))),
            Phase::Verify { .. } | Phase::Destroy { .. } => None,
        });
        let title = title.unwrap_or_else(|| "test".to_owned());
        let phases: Vec<String> = self.phases.iter().map(phase_section).collect();
        let left = self.left.as_ref().map(|why| format!("what was made is left as it is: {why}"));
        page(&title, &header(&title, Some(self.exit_code), left.as_slice()), &phases.concat())
    }
}

fn title(report: &Report) -> String {
    format!("{} {} on {}", report.verb, report.manifest, hosts(&report.hosts))
}

fn hosts(hosts: &[HostName]) -> String {
    hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(", ")
}

fn page(title: &str, header: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{header}{body}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

fn header(title: &str, code: Option<ExitCode>, facts: &[String]) -> String {
    let (class, word) = badge(code);
    let facts: Vec<String> = facts.iter().map(|fact| format!("<li>{}</li>", escaped(fact))).collect();
    format!(
        "<header>\n<h1>{} <span class=\"badge {class}\">{word}</span></h1>\n<ul class=\"facts\">{}</ul>\n</header>\n",
        escaped(title),
        facts.concat()
    )
}

const fn badge(code: Option<ExitCode>) -> (&'static str, &'static str) {
    match code {
        None => ("unfinished", "running"),
        Some(code) => match code {
            ExitCode::Done => ("good", code.word()),
            ExitCode::Partly => ("mixed", code.word()),
            ExitCode::Failed | ExitCode::Invalid | ExitCode::TimedOut => ("bad", code.word()),
        },
    }
}

fn facts(report: &Report) -> Vec<String> {
    let state = match report.state {
        RunState::Finished if report.aborted.is_some() => Some("ended early"),
        RunState::Finished if report.interrupted => Some("interrupted"),
        RunState::Finished => None,
        RunState::Running if report.paused.is_some() => Some("paused"),
        RunState::Running => Some("still running"),
        RunState::Killed => Some("killed; run again to heal what it left"),
    };
    let rolled_back = report.rolled_back.then_some("rolled back");
    let journal =
        report.journal_error.as_ref().map(|error| format!("the journal could not be written: {error}"));
    let facts = [
        format!("run {}", report.run),
        format!("site {}", report.site),
        format!("begun {:.0}", report.started_at),
        format!("took {:.1}s", report.duration().as_secs_f64()),
        format!("plan {}", report.plan.short()),
    ];
    facts
        .into_iter()
        .chain(state.map(str::to_owned))
        .chain(rolled_back.map(str::to_owned))
        .chain(journal)
        .collect()
}

/// Everything below the header of a run.
fn section(report: &Report) -> String {
    [counts(report), timeline::of(report), failure::all(report), nodes::table(report)].concat()
}

fn phase_section(phase: &Phase) -> String {
    let (class, word) = badge(Some(phase.exit_code()));
    let name = phase.name();
    let (facts, body) = match phase {
        Phase::Create { report } | Phase::Destroy { report } => (facts(report), section(report)),
        Phase::Verify { status } => (Vec::new(), standing::table(status)),
    };
    let facts: Vec<String> = facts.iter().map(|fact| format!("<li>{}</li>", escaped(fact))).collect();
    format!(
        "<section class=\"phase\">\n<h2>{name} <span class=\"badge {class}\">{word}</span></h2>\n\
         <ul class=\"facts\">{}</ul>\n{body}</section>\n",
        facts.concat()
    )
}

fn counts(report: &Report) -> String {
    let all = format!("<div class=\"count\"><b>{}</b><span>nodes</span></div>", report.nodes.len());
    let statuses = [
        NodeStatus::Changed,
        NodeStatus::Unchanged,
        NodeStatus::Failed,
        NodeStatus::Skipped,
        NodeStatus::Unfinished,
    ];
    let shown = statuses.into_iter().map(|status| (status.word(), report.count(status)));
    let shown = shown
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("<div class=\"count {word}\"><b>{count}</b><span>{word}</span></div>"));
    format!("<div class=\"counts\">{all}{}</div>\n", shown.collect::<String>())
}
