//! Two driver machines that know nothing of each other, at one host.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::home::{Home, on_each};
use crate::common::{Outcome, Running, TIMEOUTS, node};

/// A state directory of another driver machine at the same lab, which has the same key to nodes.
fn another_driver(home: &Home) -> PathBuf {
    let (folder, ours) = (home.lab.state.with_file_name("other").join("lab"), home.folder());
    fs::create_dir_all(folder.join("driver/keys")).unwrap();
    for name in ["lab.json", "settings.json", "hosts"] {
        symlink(ours.join(name), folder.join(name)).unwrap();
    }
    fs::copy(ours.join("driver/keys/driver_ed25519"), folder.join("driver/keys/driver_ed25519")).unwrap();
    folder.parent().unwrap().to_owned()
}

#[test]
fn of_two_drivers_that_make_the_same_one_does_and_both_find_it_made_afterwards() {
    let Some(home) = Home::with_nodes(&[&format!("{}, count: 2", node("w"))]) else { return };
    home.lab.write_nodes(&format!("on_error: continue, {TIMEOUTS}"), &[&format!("{}, count: 2", node("w"))]);
    // The key to nodes is made by whoever needs it first.
    home.orch("create -M lab -H mother --only w-1").ends_with(0);
    home.orch("destroy -M lab -H mother --yes").ends_with(0);
    let other = another_driver(&home);
    let rounds = if std::env::var_os("ORCH_LAB_FULL").is_some() { 8 } else { 2 };
    on_each(|host| {
        for round in 0..rounds {
            let words = format!("create -M lab -H {host} --json");
            let start = |state: Option<&PathBuf>| {
                let mut command = home.command(&words);
                if let Some(state) = state {
                    command.arg("--state").arg(state);
                }
                Running::start(&mut command, &words)
            };
            let both = |states: [Option<&PathBuf>; 2]| states.map(start).map(Running::end);
            let ended: [Outcome; 2] = both([None, Some(&other)]);
            let marks = |least: usize| {
                let all = home.people(host).machines();
                let uuids: BTreeSet<_> = all.iter().map(|machine| machine.uuid.clone()).collect();
                let names: BTreeSet<_> = all.iter().map(|machine| machine.name.clone()).collect();
                assert_eq!(uuids.len(), all.len(), "{host} {round}: marks are unique: {all:?}");
                assert_eq!(names.len(), all.len(), "{host} {round}: one of each: {all:?}");
                assert!(all.len() >= least && all.len() <= 2, "{host} {round}: {all:?}");
            };
            marks(0);
            for outcome in ended.iter().filter(|outcome| outcome.code != 0) {
                for node in outcome.json()["nodes"].as_array().unwrap() {
                    let has_reason =
                        node["status"] != "failed" || node["error"].is_string() || node["why"].is_array();
                    assert!(has_reason, "{host} {round}: {node:#}");
                }
            }
            for state in [None, Some(&other)] {
                start(state).end().ends_with(0);
            }
            marks(2);
            for state in [None, Some(&other)] {
                start(state).end().ends_with(0).every_node_is("unchanged");
            }
            home.orch(&format!("destroy -M lab -H {host} --yes")).ends_with(0);
        }
        home.assert_empty(&[host]);
    });
    home.down();
}
