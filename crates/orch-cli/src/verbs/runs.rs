//! `orch runs`: what earlier runs did, from their journals.

use std::fmt::Write;

use orch_model::HostName;
use orch_run::{ExitCode, NodeStatus, Report, RunState, RunSummary, Runs, StateDir};
use serde_json::{Value as Json, json};

use crate::args::{Cli, RunChoice, RunsArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::page::Page;

pub(crate) fn run(cli: &Cli, what: &RunsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let state = StateDir::locate(cli.state.as_deref())?;
    let runs = Runs::of(state.clone());
    let newest = |limit| {
        let unread = |source| Failure::Unread { path: state.runs(), source };
        runs.newest(limit).map_err(unread)
    };
    match what {
        RunsArgs::List { limit } => {
            let listed = newest(*limit)?;
            output.answer(&table(&listed), &listed.iter().map(summary).collect::<Vec<_>>());
        }
        RunsArgs::Show { run, report: page } => {
            let report = match run {
                RunChoice::Named(run) => runs.show(run)?,
                RunChoice::Latest => newest(1)?.pop().ok_or(Failure::NoRuns)?.report?,
            };
            let page = Page::open(page.as_deref())?;
            output.answer(&report, &report);
            return Ok(page.write(|| report.html(), ExitCode::Done));
        }
    }
    Ok(ExitCode::Done)
}

fn table(runs: &[RunSummary]) -> String {
    if runs.is_empty() {
        return "there are no runs yet".to_owned();
    }
    let mut table = String::new();
    for run in runs {
        let about = match &run.report {
            Ok(report) => told(report),
            Err(error) => format!("cannot be read: {error}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{}  {about}", run.run);
    }
    table
}

fn told(report: &Report) -> String {
    let state = match (report.state, report.exit_code) {
        (RunState::Finished, Some(code)) => format!("exit {}", u8::from(code)),
        (RunState::Finished, None) | (RunState::Running, _) => "running".to_owned(),
        (RunState::Killed, _) => "killed".to_owned(),
    };
    let hosts: Vec<&str> = report.hosts.iter().map(HostName::as_str).collect();
    format!(
        "{state:8} {} {} on {}: {} changed, {} failed of {}{}",
        report.verb,
        report.manifest,
        hosts.join(", "),
        report.count(NodeStatus::Changed),
        report.count(NodeStatus::Failed),
        report.nodes.len(),
        if report.interrupted { ", interrupted" } else { "" }
    )
}

fn summary(run: &RunSummary) -> Json {
    match &run.report {
        Ok(report) => json!({
            "run": report.run,
            "state": report.state,
            "verb": report.verb,
            "manifest": report.manifest,
            "hosts": report.hosts,
            "started_at": report.started_at,
            "exit_code": report.exit_code,
        }),
        Err(error) => json!({ "run": run.run, "error": error.to_string() }),
    }
}
