//! What is written down, and what happens when it cannot be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use orch_dag::journal::JournalError;
use orch_dag::{BoxFuture, Control, Entry, Journal, MemoryJournal, OnError, Plan, Retry, Runner};

use crate::support::{Log, changed, endless, failing, seconds, statuses};

fn text(entries: &[Entry]) -> String {
    let line = |entry: &Entry| match entry {
        Entry::Started { task, attempt } => format!("+{task} {attempt}\n"),
        Entry::Ended(report) => format!("-{report}\n"),
    };
    entries.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_written_before_and_every_end_after() {
    let journal = Arc::new(MemoryJournal::new());
    let mut plan = Plan::new("p").on_error(OnError::Continue);
    let seen = journal.clone();
    plan.task("a", move |cx| {
        let last = seen.entries().last().cloned();
        assert_eq!(last, Some(Entry::Started { task: "a".into(), attempt: cx.attempt() }));
        async move { if cx.attempt() == 1 { failing(cx).await } else { changed(cx).await } }
    })
    .retry(Retry::times(1));
    plan.task("b", failing).after("a");
    plan.task("c", changed).after("b");
    plan.task("d", changed).after("a").when("never", |_| false);
    Runner::new().limit(1).journal(journal.clone()).run(plan).await.unwrap();
    expect![[r"
        +a 1
        +a 2
        -a: changed (2 attempts)
        +b 1
        -b: failed: broken
        -c: skipped: dependency `b` failed
        -d: skipped: guard `never` does not hold
    "]]
    .assert_eq(&text(&journal.entries()));
}

#[tokio::test(start_paused = true)]
async fn what_the_end_of_the_run_cut_short_or_kept_from_starting_is_not_written_as_ended() {
    let (journal, control) = (Arc::new(MemoryJournal::new()), Control::new());
    let mut plan = Plan::new("p");
    plan.task("cut", endless);
    plan.task("retrying", failing).retry(Retry::times(1).initial(seconds(90)).cap(seconds(90)));
    plan.task("unreached", changed).after("cut");
    let handle = control.clone();
    tokio::spawn(async move {
        tokio::time::sleep(seconds(1)).await;
        handle.cancel();
    });
    let report = Runner::new().journal(journal.clone()).control(control).run(plan).await.unwrap();
    expect![[r"
        cut: failed: cancelled
        retrying: failed: broken
        unreached: skipped: the run was cancelled
    "]]
    .assert_eq(&statuses(&report));
    expect![[r"
        +cut 1
        +retrying 1
    "]]
    .assert_eq(&text(&journal.entries()));
}

/// Fails from the given entry on.
struct Full {
    room: usize,
    written: AtomicUsize,
}

impl Full {
    fn after(room: usize) -> Self {
        Self { room, written: AtomicUsize::new(0) }
    }
}

impl Journal for Full {
    fn write<'a>(&'a self, _: &'a Entry) -> BoxFuture<'a, Result<(), JournalError>> {
        let full = self.written.fetch_add(1, Ordering::SeqCst) >= self.room;
        let result = if full { Err(JournalError::new("no space left")) } else { Ok(()) };
        Box::pin(std::future::ready(result))
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_start_cannot_be_written_is_not_run() {
    let log = Log::default();
    let mut plan = Plan::new("p");
    plan.task("a", log.task(seconds(1)));
    plan.task("b", log.task(seconds(1))).after("a");
    let report = Runner::new().journal(Full::after(2)).run(plan).await.unwrap();
    expect![[r"
        a: changed
        b: skipped: the journal could not be written
    "]]
    .assert_eq(&statuses(&report));
    assert_eq!(log.text(), "+a\n-a");
    assert_eq!(report.journal_error.as_deref(), Some("the journal could not be written: no space left"));
    assert!(!report.is_success());
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_end_cannot_be_written_keeps_it_and_nothing_new_starts() {
    let mut plan = Plan::new("p");
    plan.task("a", changed);
    plan.task("b", changed).after("a");
    let report = Runner::new().journal(Full::after(1)).run(plan).await.unwrap();
    expect![[r"
        a: changed
        b: skipped: the journal could not be written
    "]]
    .assert_eq(&statuses(&report));
    assert!(report.journal_error.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_retry_whose_start_cannot_be_written_is_not_made() {
    let mut plan = Plan::new("p");
    plan.task("a", failing).retry(Retry::times(3));
    let report = Runner::new().journal(Full::after(1)).run(plan).await.unwrap();
    assert_eq!((report.tasks[0].attempts, statuses(&report).as_str()), (1, "a: failed: broken\n"));
}

struct Panics;

impl Journal for Panics {
    fn write<'a>(&'a self, _: &'a Entry) -> BoxFuture<'a, Result<(), JournalError>> {
        panic!("no pen")
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_panics_is_a_journal_that_cannot_be_written() {
    let mut plan = Plan::new("p");
    plan.task("a", changed);
    let report = Runner::new().journal(Panics).run(plan).await.unwrap();
    assert_eq!(report.journal_error.as_deref(), Some("the journal could not be written: panicked: no pen"));
}
