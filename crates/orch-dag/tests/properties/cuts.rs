//! Runs that are cut anywhere and resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use orch_dag::journal::file::Lines;
use orch_dag::{Entry, FileJournal, MemoryJournal, OnError, Report, Resume, Runner};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::config;
use crate::spec::{Spec, specs};
use crate::trial::{Trial, run};

/// All that must not depend on where the run was cut.
fn essence(report: &Report<u64>) -> BTreeMap<String, String> {
    let one = |status, value: &Option<u64>, hosts| format!("{status} {value:?} {hosts:?}");
    report
        .tasks
        .iter()
        .map(|task| (task.name.to_string(), one(&task.status, &task.value, &task.hosts)))
        .collect()
}

fn ended(entries: &[Entry<u64>]) -> BTreeSet<&str> {
    entries.iter().filter(|entry| matches!(entry, Entry::Ended(_))).map(|entry| &**entry.task()).collect()
}

fn check(uncut: &Report<u64>, before: &[Entry<u64>], resumed: &Trial) {
    assert_eq!(essence(&resumed.report), essence(uncut));
    for task in ended(before) {
        assert!(!resumed.ran(task), "{task} was run again");
        assert!(resumed.report.resumed.contains(task), "{task} is not reported as resumed");
    }
}

/// Under other strategies than `Continue`, what is reached depends on timing, unless one task runs at a time.
fn strategies() -> impl Strategy<Value = (OnError, usize)> {
    prop_oneof![
        (Just(OnError::Continue), 1usize..6),
        (select(vec![OnError::Stop, OnError::StopAll]), Just(1usize)),
    ]
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn a_run_cut_after_any_entry_and_resumed_ends_as_the_uncut_one(
        spec in specs(),
        (on_error, limit) in strategies(),
    ) {
        let journal = Arc::new(MemoryJournal::new());
        let uncut = run(&spec, on_error, Runner::new().limit(limit).journal(journal.clone()));
        let entries = journal.entries();
        for cut in 0..=entries.len() {
            let before = &entries[..cut];
            let continued = Arc::new(MemoryJournal::new());
            let runner = Runner::new().limit(limit).journal(continued.clone());
            let resumed = run(&spec, on_error, runner.resume(Resume::new(before.to_vec())));
            check(&uncut.report, before, &resumed);

            let both: Vec<Entry<u64>> = before.iter().cloned().chain(continued.entries()).collect();
            let third = run(&spec, on_error, Runner::new().limit(limit).resume(Resume::new(both)));
            prop_assert!(third.events.is_empty(), "a finished run has nothing left to do");
            prop_assert_eq!(essence(&third.report), essence(&uncut.report));
        }
    }
}

fn run_on_file(spec: &Spec, (on_error, limit): (OnError, usize), path: &Path) -> Trial {
    let (journal, resume) = FileJournal::resume(path).unwrap();
    run(spec, on_error, Runner::new().limit(limit).journal(journal).resume(resume))
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_run_whose_file_is_cut_at_any_byte_and_resumed_ends_as_the_uncut_one(
        spec in specs(),
        strategy in strategies(),
        cuts in prop::collection::vec(any::<Index>(), 3),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let whole = directory.path().join("whole");
        let uncut = run_on_file(&spec, strategy, &whole);
        let bytes = fs::read(&whole).unwrap();
        for cut in cuts {
            let path = directory.path().join("cut");
            fs::write(&path, &bytes[..cut.index(bytes.len() + 1)]).unwrap();
            let before = Lines::read::<Entry<u64>>(&path).unwrap().entries;
            let resumed = run_on_file(&spec, strategy, &path);
            check(&uncut.report, &before, &resumed);
            let all = Lines::read::<Entry<u64>>(&path).unwrap();
            prop_assert!(!all.torn);
            prop_assert_eq!(&all.entries[..before.len()], &before[..]);
        }
    }
}
