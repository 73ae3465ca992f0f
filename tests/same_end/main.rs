//! However a configuration comes to a node, it makes the same of it: for random sites, specs, postures and machines, a push
//! and a fetch from a real server leave the same files behind and say the same of every resource, also where they fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod ends;
mod machine;
mod machines;
mod server;
mod site;
mod sites;
mod twins;

use orch_model::ApplyStatus;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use machine::Machine;
use machines::{Equipment, Furniture};
use site::Plot;
use twins::Twins;

/// A case is twelve processes and a server; more are asked for by `PROPTEST_CASES`, and these are the most.
const MOST: u32 = 250;
const CASES: u32 = 24;

fn settings() -> ProptestConfig {
    let usual =
        ProptestConfig { failure_persistence: None, max_shrink_iters: 60, ..ProptestConfig::default() };
    let asked = std::env::var_os("PROPTEST_CASES").map_or(CASES, |_| usual.cases.min(MOST));
    ProptestConfig { cases: asked, ..usual }
}

#[test]
fn push_and_pull_come_to_the_same_end() {
    // Not by the macro: it takes the number of cases from the environment, whatever the settings say.
    let mut runner = TestRunner::new(settings());
    let cases = (sites::plot(), sites::spec(), machines::furniture());
    let outcome = runner.run(&cases, |(before, spec, furniture)| {
        let twins = Twins::of(&before, &furniture);
        twins.converge();
        twins.change_spec(&spec);
        twins.converge();
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
}

#[test]
fn a_machine_that_has_everything_is_made_whole_alike() {
    let furniture = Furniture { equipment: Equipment::Whole, ..Furniture::default() };
    let plot = Plot {
        posture: Some(json!({ "fail2ban": { "enabled": true }, "sudo": { "nopasswd": true } })),
        spec: json!({
            "schema_version": 1,
            "access": { "posture": "some", "users": [{ "name": "alice", "sudo": true }] },
            "platform": { "packages": ["htop"], "services": { "enable": ["chrony"], "disable": ["rpcbind"] } },
            "config": { "timezone": "Europe/Berlin" },
            "files": [{ "path": "/srv/a", "content": "a", "mode": "4750", "owner": "alice" }],
        }),
        ..Plot::default()
    };
    let twins = Twins::of(&plot, &furniture);
    assert_eq!(twins.converge(), ApplyStatus::Complete);
}

#[test]
fn what_fails_half_way_fails_alike() {
    let user = |name: &str| json!({ "access": { "users": [{ "name": name }] } });
    let file = |path: &str| json!({ "files": [{ "path": path, "content": "x" }] });
    let broken = [
        json!({ "files": [{ "path": "/srv/a", "content": "a" }, { "path": "/srv/a/b", "content": "b" }] }),
        json!({ "files": [{ "path": "/srv/a", "content": "a", "owner": "nobody-here" }] }),
        json!({ "platform": { "packages": ["nonsense", "htop"], "services": { "enable": ["ghost"] } } }),
        json!({ "config": { "timezone": "Mars/Olympus" } }),
        json!({ "secrets": [{ "name": "key", "path": "/proc/key" }] }),
        user("staff"),
        file("/etc/hostname"),
        file("/proc/version"),
        file("/etc/ssh/sshd_config.d/10-mine.conf/deep"),
    ];
    let furniture = Furniture { equipment: Equipment::Whole, ..Furniture::default() };
    let twins = Twins::of(&Plot::default(), &furniture);
    for mut spec in broken {
        spec["schema_version"] = json!(1);
        twins.change_spec(&spec);
        assert_eq!(twins.converge(), ApplyStatus::Failed, "{spec}");
    }
}

#[test]
fn ends_that_differ_in_anything_are_told_apart() {
    let furniture = Furniture::default();
    let same = Machine::new(&furniture);
    assert_eq!(same.end(), Machine::new(&furniture).end());
    for (what, spoil) in machine::SPOILS {
        let other = Machine::new(&furniture);
        spoil(&other);
        assert_ne!(same.end(), other.end(), "{what}");
    }
}
