//! `orch runs`: what earlier runs did, from their journals.

use std::fmt::Write;

use orch_model::{HostName, printable};
use orch_run::{ExitCode, NodeStatus, Report, RunId, RunState, RunSummary, Runs, StateDir, Wish};
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
    let named = |run: &RunChoice| match run {
        RunChoice::Named(run) => Ok(run.clone()),
        RunChoice::Latest => newest(1)?.pop().map(|run| run.run).ok_or(Failure::NoRuns),
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
        RunsArgs::Pause { run } => wish(&runs, &named(run)?, Wish::Pause, output)?,
        RunsArgs::Resume { run } => wish(&runs, &named(run)?, Wish::Resume, output)?,
        RunsArgs::Abort { run } => wish(&runs, &named(run)?, Wish::Abort, output)?,
    }
    Ok(ExitCode::Done)
}

/// Tells a run what is wanted of it.
fn wish(runs: &Runs, run: &RunId, wish: Wish, output: &Output) -> Result<(), Failure> {
    runs.wish(run, wish)?;
    let told = match wish {
        Wish::Pause => {
            format!("run {run} is told to pause: what runs comes to its end, nothing new is begun")
        }
        Wish::Resume => format!("run {run} is told to go on"),
        Wish::Abort => format!("run {run} is told to end: what runs comes to its end, nothing new is begun"),
    };
    output.answer(&told, &json!({ "run": run, "wish": wish }));
    Ok(())
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
        (RunState::Running, _) if report.paused.is_some() => "paused".to_owned(),
        (RunState::Finished, None) | (RunState::Running, _) => "running".to_owned(),
        (RunState::Killed, _) => "killed".to_owned(),
    };
    let hosts: Vec<&str> = report.hosts.iter().map(HostName::as_str).collect();
    let paused = report.paused.as_ref().map(|paused| format!(", paused by {}", printable(&paused.by)));
    format!(
        "{state:8} {} {} on {}: {} changed, {} failed of {}{}{}",
        report.verb,
        report.manifest,
        hosts.join(", "),
        report.count(NodeStatus::Changed),
        report.count(NodeStatus::Failed),
        report.nodes.len(),
        if report.interrupted { ", interrupted" } else { "" },
        paused.unwrap_or_default()
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
            "paused": report.paused,
        }),
        Err(error) => json!({ "run": run.run, "error": error.to_string() }),
    }
}
