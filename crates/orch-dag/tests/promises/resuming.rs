//! What a later run takes over from an earlier one.

use std::sync::Arc;

use expect_test::expect;
use orch_dag::{
    Entry, FileJournal, HostStatus, MemoryJournal, OnError, Outcome, Plan, Report, Resume, Runner, TaskError,
};

use crate::support::{Log, statuses};

/// `fails` fails while it is told to; each task notes that it ran.
fn plan(log: &Log, broken: bool, on_error: OnError) -> Plan<u32> {
    let mut plan = Plan::new("p").on_error(on_error);
    let note = |plan: &mut Plan<u32>, name: &'static str, after: &[&str], failing: bool| {
        let log = log.clone();
        plan.task(name, move |cx| {
            log.note(cx.task());
            let sum: u32 = ["a", "fails", "b", "c"].iter().filter_map(|name| cx.value(name)).sum();
            async move {
                let outcome = Outcome::changed().with(sum + 1).host("one", HostStatus::Changed);
                if failing {
                    Err(TaskError::new("broken").host("one", HostStatus::Failed))
                } else {
                    Ok(outcome)
                }
            }
        })
        .after_all(after.iter().copied());
    };
    note(&mut plan, "a", &[], false);
    note(&mut plan, "fails", &["a"], broken);
    note(&mut plan, "b", &["a"], false);
    note(&mut plan, "c", &["fails", "b"], false);
    plan.task("cleanup", |_| async { Ok(Outcome::changed().with(0)) })
        .after("fails")
        .only_if_any_host(HostStatus::Failed);
    plan
}

async fn run(broken: bool, on_error: OnError, resume: Resume<u32>) -> (Report<u32>, Vec<Entry<u32>>, String) {
    let (log, journal) = (Log::default(), Arc::new(MemoryJournal::new()));
    let runner = Runner::new().limit(1).journal(journal.clone()).resume(resume);
    let report = runner.run(plan(&log, broken, on_error)).await.unwrap();
    (report, journal.entries(), log.text().replace('\n', " "))
}

fn fresh() -> Resume<u32> {
    Resume::new([])
}

#[tokio::test(start_paused = true)]
async fn what_ended_is_not_run_again_and_its_value_and_hosts_are_there() {
    let (uncut, entries, _) = run(true, OnError::Continue, fresh()).await;
    let (report, _, ran) = run(true, OnError::Continue, Resume::new(entries[..5].to_vec())).await;
    assert_eq!(ran, "b");
    assert_eq!(statuses(&report), statuses(&uncut));
    assert_eq!(report.task("b").unwrap().value, uncut.task("b").unwrap().value);
    assert_eq!(report.resumed.iter().map(|name| &**name).collect::<Vec<_>>(), ["a", "fails"]);
}

#[tokio::test(start_paused = true)]
async fn what_started_and_did_not_end_is_run_again() {
    let (_, entries, _) = run(false, OnError::Continue, fresh()).await;
    let (_, _, ran) = run(false, OnError::Continue, Resume::new(entries[..3].to_vec())).await;
    assert_eq!(ran, "fails b c");
}

#[tokio::test(start_paused = true)]
async fn what_failed_stays_failed_and_means_what_it_meant() {
    for on_error in [OnError::Stop, OnError::StopAll, OnError::Continue] {
        let (first, entries, _) = run(true, on_error, fresh()).await;
        let (second, more, ran) = run(false, on_error, Resume::new(entries)).await;
        assert_eq!((ran.as_str(), more.len()), ("", 0));
        assert_eq!(statuses(&second), statuses(&first));
    }
}

#[tokio::test(start_paused = true)]
async fn retry_failed_runs_the_failed_and_the_skipped_again_and_nothing_else() {
    let (_, entries, _) = run(true, OnError::Continue, fresh()).await;
    let (report, _, ran) = run(false, OnError::Continue, Resume::new(entries).retry_failed()).await;
    assert_eq!(ran, "fails c");
    expect![[r"
        a: changed
        fails: changed
        b: changed
        c: changed
        cleanup: changed
    "]]
    .assert_eq(&statuses(&report));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_was_cut_leaves_nothing_stale_behind() {
    let (_, entries, _) = run(true, OnError::Continue, fresh()).await;
    let (_, more, _) = run(false, OnError::Continue, Resume::new(entries.clone()).retry_failed()).await;
    // Cut when `fails` had been started again: its old failure no longer stands. Cut when it had succeeded: `c` no
    // longer stands as skipped because of it.
    for (cut, expected) in [(1, "fails c"), (2, "c")] {
        let both = entries.iter().chain(&more[..cut]).cloned();
        let (report, _, ran) = run(false, OnError::Continue, Resume::new(both)).await;
        assert_eq!(ran, expected);
        assert!(report.is_success());
    }
}

#[tokio::test]
async fn a_run_resumes_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let log = Log::default();
    let runner = Runner::new().journal(FileJournal::create(&path).unwrap());
    let first = runner.run(plan(&log, true, OnError::Stop)).await.unwrap();
    assert!(!first.is_success());

    let (journal, resume) = FileJournal::resume(&path).unwrap();
    let runner = Runner::new().journal(journal).resume(resume.retry_failed());
    assert!(runner.run(plan(&log, false, OnError::Stop)).await.unwrap().is_success());

    let log = Log::default();
    let (journal, resume) = FileJournal::resume(&path).unwrap();
    let third =
        Runner::new().journal(journal).resume(resume).run(plan(&log, false, OnError::Stop)).await.unwrap();
    assert!(third.is_success());
    assert_eq!((log.text().as_str(), third.resumed.len()), ("", 5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_is_free_when_the_run_is_over_even_if_a_context_is_still_held() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    for _ in 0..20 {
        // Fails if the run before still held the file.
        let (journal, _) = FileJournal::<u32>::resume(&path).unwrap();
        let mut plan = Plan::new("p");
        plan.task("a", |cx| async move {
            tokio::spawn(async move {
                cx.cancelled().await;
                std::future::pending::<()>().await;
            });
            Ok(Outcome::changed().with(1))
        });
        plan.task("b", |_| async { Ok(Outcome::changed().with(2)) });
        Runner::new().journal(journal).run(plan).await.unwrap();
    }
}
