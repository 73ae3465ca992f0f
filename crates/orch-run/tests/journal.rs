//! What a run wrote down can always be read as far as it got, and tells of every node once.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Around, Driver, Effect, Gate, fleet, memory, own_fleet};
use expect_test::{Expect, expect};
use orch_plan::{Plan, Verb};
use orch_run::{Entry, ExitCode, JournalFileError, NodeStatus, Report, RunId, RunJournal, RunState, Runs};

/// The journal of the newest run.
fn file(driver: &Driver) -> PathBuf {
    let run = newest(driver).to_string();
    driver.state.runs().join(format!("{run}.jsonl"))
}

fn newest(driver: &Driver) -> RunId {
    Runs::of(driver.state.clone()).newest(1).expect("runs can be listed").remove(0).run
}

/// A driver that created two nodes, the second of which could not be configured.
async fn half_failed(on_error: &str) -> (Driver, Plan, Report) {
    let nodes = "  - { name: hub, type: pve, spec: pve, preset: small, image: i }
  - { name: leaf, type: vm, spec: base, preset: small, image: i, parent: hub }
  - { name: last, type: vm, preset: small, image: i, depends_on: [leaf] }";
    let host = Around::new(&memory(), |effect: Effect| async move {
        let wrong = effect.verb == "configure" && effect.node == "leaf";
        if wrong { Gate::Refused } else { Gate::Open }
    });
    let driver = Driver::of(&host);
    let plan = driver.planned(&own_fleet(&format!("on_error: {on_error}"), nodes), Verb::Create).await;
    let report = driver.run(&plan).await;
    (driver, plan, report)
}

#[tokio::test]
async fn every_prefix_of_a_journal_tells_of_every_node_exactly_once() {
    for on_error in ["stop", "rollback", "continue"] {
        let (driver, plan, report) = half_failed(on_error).await;
        let entries = driver.entries();
        assert!(Report::of(&[]).is_none(), "nothing was begun");
        assert!(Report::of(&entries[1..]).is_none(), "a journal without its plan tells nothing");
        for length in 1..=entries.len() {
            let told = Report::of(&entries[..length]).expect("it begins with its plan");
            let nodes: Vec<_> = told.nodes.iter().map(|node| &node.identity).collect();
            let planned: Vec<_> = plan.nodes.iter().map(|node| &node.identity).collect();
            assert_eq!(nodes, planned, "{on_error}, the first {length} entries");
            let whole = length == entries.len();
            let state = if whole { RunState::Finished } else { RunState::Running };
            assert_eq!(told.state, state, "{on_error}, the first {length} entries: this process is alive");
            assert_eq!(told.exit_code.is_some(), whole, "what is not over has no exit code: {told}");
        }
        assert_eq!(Report::of(&entries).expect("it is whole").exit_code, report.exit_code);
    }
}

#[tokio::test]
async fn a_run_whose_process_is_gone_is_told_as_killed_and_its_open_steps_as_unfinished() {
    let (driver, _, _) = half_failed("stop").await;
    let mut entries = driver.entries();
    // The same pid with another start is another process.
    if let Some(Entry::Begun { started, .. }) = entries.first_mut() {
        *started += 1;
    }
    for length in 1..entries.len() {
        let told = Report::of(&entries[..length]).expect("it begins with its plan");
        assert_eq!(told.state, RunState::Killed);
        assert_ne!(told.exit_code, Some(ExitCode::Done), "{told}");
        assert!(told.to_string().ends_with("killed; run again to heal what it left"), "{told}");
    }
    let first = Report::of(&entries[..1]).expect("it begins with its plan");
    assert_eq!(first.count(NodeStatus::Unfinished), 3, "{first}");
    assert_eq!(Report::of(&entries).expect("it is whole").state, RunState::Finished);
}

#[tokio::test]
async fn a_torn_last_line_is_passed_over_wherever_it_was_torn() {
    let (driver, _, _) = half_failed("stop").await;
    let (path, run) = (file(&driver), newest(&driver));
    let bytes = fs::read(&path).expect("the journal is there");
    let count = driver.entries().len();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("there are lines") + 1;
    for length in last..bytes.len() {
        fs::write(&path, &bytes[..length]).expect("the journal can be cut");
        let entries = RunJournal::read(&driver.state, &run).expect("a torn tail is no damage");
        assert_eq!(entries.len(), count - 1, "cut at byte {length}");
    }
}

#[tokio::test]
async fn a_journal_that_was_cut_in_its_first_line_tells_nothing_and_says_so() {
    let (driver, _, _) = half_failed("stop").await;
    let (path, run) = (file(&driver), newest(&driver));
    let bytes = fs::read(&path).expect("the journal is there");
    for length in [0, 1, 100] {
        fs::write(&path, &bytes[..length]).expect("the journal can be cut");
        let error = Runs::of(driver.state.clone()).show(&run).expect_err("there is nothing to tell");
        assert!(matches!(error, JournalFileError::Empty(_)), "{error}");
        let listed = Runs::of(driver.state.clone()).newest(9).expect("runs can be listed");
        assert_eq!(listed.len(), 1, "it is listed all the same");
    }
}

#[tokio::test]
async fn damage_in_the_middle_is_named_with_its_line_and_does_not_hide_other_runs() {
    let driver = Driver::of(&memory());
    let fleet = fleet("single-node");
    driver.create(&fleet).await;
    let (path, damaged) = (file(&driver), newest(&driver));
    driver.destroy(&fleet).await;
    let text = fs::read_to_string(&path).expect("the journal is there");
    let broken = text.replacen("\"event\":\"marked\"", "\"event\":\"mocked\"", 1);
    assert_ne!(text, broken);
    fs::write(&path, broken).expect("the journal can be damaged");
    let runs = Runs::of(driver.state.clone()).newest(9).expect("runs can be listed");
    assert_eq!(runs.len(), 2);
    assert!(runs[0].report.is_ok(), "the other run is told");
    assert_eq!(runs[1].run, damaged);
    let error = runs[1].report.as_ref().expect_err("it is damaged");
    let cause = std::error::Error::source(error).expect("the cause is kept").to_string();
    assert_eq!(cause, format!("line 3 of `{}` is damaged", path.display()));
}

#[tokio::test]
async fn runs_are_listed_newest_first_even_within_one_second() {
    let driver = Driver::of(&memory());
    let fleet = fleet("single-node");
    let mut verbs = Vec::new();
    for turn in 0..12 {
        let verb = if turn % 3 == 0 { Verb::Create } else { Verb::Destroy };
        let plan = driver.planned(&fleet, verb).await;
        verbs.insert(0, driver.run(&plan).await.run);
    }
    let runs = Runs::of(driver.state.clone());
    let listed: Vec<RunId> =
        runs.newest(99).expect("runs can be listed").into_iter().map(|summary| summary.run).collect();
    assert_eq!(listed, verbs);
    assert_eq!(runs.newest(3).expect("runs can be listed").len(), 3);
}

#[test]
fn files_that_are_no_journals_are_not_listed_and_no_folder_is_no_error() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = orch_run::StateDir::locate(Some(folder.path())).expect("a folder that is given is taken");
    let runs = Runs::of(state.clone());
    assert!(runs.newest(9).expect("no folder is no error").is_empty());
    let path = state.make_runs().expect("a folder can be made");
    for name in ["README", "x.jsonl.swp", "..jsonl", "UPPER.jsonl", ".jsonl"] {
        fs::write(path.join(name), "x").expect("a file can be written");
    }
    assert!(runs.newest(9).expect("runs can be listed").is_empty());
    let unknown: RunId = "20260107-103000-3f9a".parse().expect("a run has a name");
    assert_eq!(
        runs.show(&unknown).expect_err("there is none").to_string(),
        "there is no run `20260107-103000-3f9a`"
    );
    for bad in ["", "../../etc/passwd", "a/b", "x.y", &"9".repeat(41)] {
        assert!(bad.parse::<RunId>().is_err(), "`{bad}` names no run");
    }
}

#[tokio::test]
async fn a_journal_names_secrets_and_their_places_and_holds_nothing_of_what_they_are() {
    let web = "{ name: test-vm, type: vm, spec: web";
    let change = ("manifests/single-node-push.yaml", "{ name: test-vm, type: vm, spec: base", web);
    let driver = Driver::of(&memory());
    let report = driver.create(&common::sample_fleet("single-node-push", &[change])).await;
    assert_eq!(report.exit_code, Some(ExitCode::Done), "{report}");
    let text = fs::read_to_string(file(&driver)).expect("the journal is there");
    let first: serde_json::Value =
        serde_json::from_str(text.lines().next().expect("there is a line")).expect("a line is JSON");
    let secrets = &first["entry"]["plan"]["nodes"][0]["up"][1]["config"]["secrets"];
    let expected = serde_json::json!([
        { "name": "web-tls-key", "path": "/run/secrets/web-tls-key", "from": "secret:web-tls-key", "mode": "0400", "owner": "root" }
    ]);
    assert_eq!(*secrets, expected, "a secret is its name, where it is kept and where it goes");
    for token in ["hcloud-token", "mother-api-token", "PRIVATE KEY", "password_hash"] {
        assert!(!text.contains(token), "the journal holds `{token}`");
    }
}

/// A report with what differs from run to run replaced: times, the run's name, and the plan's digest.
fn normalised(report: Report) -> Report {
    let mut report = report;
    report.run = "20260107-103000-3f9a".parse().expect("a run has a name");
    report.started_at = "2026-01-07T10:30:00Z".parse().expect("a time is a time");
    report.finished_at = Some("2026-01-07T10:31:23.4Z".parse().expect("a time is a time"));
    for step in report.nodes.iter_mut().flat_map(|node| &mut node.steps) {
        step.started = step.started.map(|_| 1.0);
        step.seconds = 12.34;
    }
    report
}

fn check_text(report: Report, expected: &Expect) {
    expected.assert_eq(&normalised(report).to_string());
}

#[tokio::test]
async fn a_report_tells_each_node_why_what_to_try_and_the_counts() {
    let (_, _, report) = half_failed("stop").await;
    check_text(
        report,
        &expect![[r#"
            create m on father (run 20260107-103000-3f9a)

              ~ changed    hub   create 12.3s, configure 12.3s
              ! failed     leaf  create 12.3s; configure failed
              - skipped    last  `leaf` failed

            failed: configure leaf
                node `m.leaf@father` could not apply its configuration: injected
                try: mend the spec of `m.leaf@father` or what stands in its way, and run again

            3 nodes: 1 changed, 1 failed, 1 skipped · 83.4s"#]],
    );
}

#[tokio::test]
async fn a_report_of_a_rollback_says_what_was_taken_down() {
    let (_, _, report) = half_failed("rollback").await;
    check_text(
        report,
        &expect![[r#"
            create m on father (run 20260107-103000-3f9a)

              - skipped    hub   rolled back, because another node failed; create 12.3s, configure 12.3s
              ! failed     leaf  create 12.3s; configure failed
              - skipped    last  `leaf` failed

            failed: configure leaf
                node `m.leaf@father` could not apply its configuration: injected: rolled back
                try: mend the spec of `m.leaf@father` or what stands in its way, and run again

            3 nodes: 1 failed, 2 skipped · 83.4s"#]],
    );
}

#[tokio::test]
async fn a_report_as_json_has_the_same_facts_in_fixed_places() {
    let (_, _, report) = half_failed("stop").await;
    let digest = report.plan.to_string();
    let json = serde_json::to_string_pretty(&normalised(report)).expect("a report is JSON");
    let json = json.replace(&digest, "<digest>");
    expect![[r#"
        {
          "run": "20260107-103000-3f9a",
          "state": "finished",
          "verb": "create",
          "site": "home",
          "manifest": "m",
          "hosts": [
            "father"
          ],
          "plan": "<digest>",
          "started_at": "2026-01-07T10:30:00Z",
          "finished_at": "2026-01-07T10:31:23.4Z",
          "exit_code": 2,
          "interrupted": false,
          "rolled_back": false,
          "nodes": [
            {
              "identity": "m.hub@father",
              "status": "changed",
              "timed_out": false,
              "steps": [
                {
                  "action": "create",
                  "status": "changed",
                  "attempts": 1,
                  "started": 1.0,
                  "seconds": 12.34
                },
                {
                  "action": "configure",
                  "status": "changed",
                  "attempts": 1,
                  "started": 1.0,
                  "seconds": 12.34
                }
              ]
            },
            {
              "identity": "m.leaf@father",
              "status": "failed",
              "why": [
                "node `m.leaf@father` could not apply its configuration: injected"
              ],
              "hint": "mend the spec of `m.leaf@father` or what stands in its way, and run again",
              "timed_out": false,
              "steps": [
                {
                  "action": "create",
                  "status": "changed",
                  "attempts": 1,
                  "started": 1.0,
                  "seconds": 12.34
                },
                {
                  "action": "configure",
                  "status": "failed",
                  "attempts": 1,
                  "started": 1.0,
                  "seconds": 12.34
                }
              ]
            },
            {
              "identity": "m.last@father",
              "status": "skipped",
              "why": [
                "`leaf` failed"
              ],
              "timed_out": false,
              "steps": [
                {
                  "action": "create",
                  "status": "skipped",
                  "attempts": 0,
                  "started": null,
                  "seconds": 12.34
                }
              ]
            }
          ]
        }"#]]
    .assert_eq(&json);
}

#[tokio::test]
async fn two_runs_that_begin_at_the_very_same_moment_have_a_journal_each() {
    let driver = Driver::of(&memory());
    let plan = driver.planned(&fleet("nested-test"), Verb::Create).await;
    let name: RunId = "20260107-103000-00ff".parse().expect("it is a name");
    let first = RunJournal::begin(&driver.state, name.clone(), &plan).await.expect("it can be begun");
    let second = RunJournal::begin(&driver.state, name.clone(), &plan).await.expect("so can the other");
    assert_eq!((first.run(), second.run().to_string().as_str()), (&name, "20260107-103000-0100"));
    assert!(second.run() > first.run(), "the order of names is the order of runs");
}
