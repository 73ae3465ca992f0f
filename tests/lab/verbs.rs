//! Verbs and exit codes, each shown by a real run.

use crate::common::{Gate, Lab, Need, TIMEOUTS, assert_nothing_is_left, lacks, node, spec};

const CREATE: &str = "create -M lab -H father --json";
const STATUS: &str = "status -M lab -H father --json";
const DESTROY: &str = "destroy -M lab -H father --yes --json";

/// A node whose configuration cannot be made true.
fn failing(name: &str) -> String {
    node(name).replace("spec: plain", "spec: broken")
}

/// A lab with a spec that fails.
fn lab(settings: &str, nodes: &[&str]) -> Lab {
    let lab = Lab::with_nodes(&format!("{settings}, {TIMEOUTS}"), nodes);
    // A folder is in the way of the file.
    let broken = spec("x").replace("files: [", "files: [{ path: /var/log, content: x }, ");
    lab.write("specs/broken.yaml", &broken);
    lab
}

#[track_caller]
fn assert_statuses(run: &crate::common::Outcome, wanted: &[(&str, &str)]) {
    for (name, status) in wanted {
        assert_eq!(run.node(name)["status"], *status, "{name}: {}", run.stdout);
    }
}

#[test]
fn a_test_makes_verifies_and_destroys_and_tells_of_the_three() {
    if lacks(&[]) {
        return;
    }
    let lab = lab("on_error: stop", &[&node("a")]);
    let told = lab.orch("test -M lab -H father --json").ends_with(0).json();
    let phases: Vec<_> =
        told["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].clone()).collect();
    assert_eq!(phases, ["create", "verify", "destroy"]);
    assert_eq!(told["phases"][1]["status"]["nodes"][0]["condition"], "as-wanted", "{told:#}");
    assert_nothing_is_left(&lab);

    lab.orch(CREATE).ends_with(0);
    lab.orch("test -M lab -H father").ends_with(3).says("would destroy what it did not make");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch(DESTROY).ends_with(0);
}

#[test]
fn a_test_that_fails_destroys_what_it_made_unless_the_manifest_wants_to_keep_it() {
    if lacks(&[]) {
        return;
    }
    let lab = lab("cleanup_on_failure: true", &[&failing("a")]);
    lab.orch("test -M lab -H father --json").ends_with(1);
    assert_nothing_is_left(&lab);
    lab.write_nodes(&format!("cleanup_on_failure: false, {TIMEOUTS}"), &[&failing("a")]);
    lab.orch("test -M lab -H father --json").ends_with(1);
    assert_eq!(lab.machines(), ["lab-a"]);
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn exec_ends_as_the_program_did_on_the_nodes() {
    if lacks(&[]) {
        return;
    }
    let lab = lab("on_error: stop", &[&node("a"), &node("b")]);
    lab.orch(CREATE).ends_with(0);
    let exec = |words: &str| lab.orch(&format!("exec -M lab -H father {words}"));
    exec("-- true").ends_with(0);
    exec("-- false").ends_with(1);
    exec("-- grep -qx a /etc/hostname").ends_with(2).says("== a: exit 0").says("== b: exit 1");
    exec("-- no-such-program").ends_with(1).says("127");
    exec("--timeout 1s -- sleep 30").ends_with(4);
    // What a shell would take for its own arrives as it is.
    exec("--only a -- printf %s $HOME;*|`id`").ends_with(0).says("$HOME;*|`id`");
    lab.orch("ssh -M lab -H father a -- false").ends_with(1);
    lab.orch("ssh -M lab -H father c -- true").ends_with(3);
    lab.orch(DESTROY).ends_with(0);
}

#[test]
fn with_on_error_continue_only_those_who_need_a_failed_node_are_skipped() {
    if lacks(&[]) {
        return;
    }
    let nodes = [
        failing("a"),
        node("b"),
        format!("{}, depends_on: [a]", node("c")),
        format!("{}, depends_on: [b]", node("d")),
    ];
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let lab = lab("on_error: continue", &nodes);
    let partly = lab.orch(CREATE).ends_with(2);
    assert_statuses(&partly, &[("a", "failed"), ("b", "changed"), ("c", "skipped"), ("d", "changed")]);
    assert_eq!(partly.node("c")["why"], serde_json::json!(["`a` failed"]), "it is said which");
    // Whether it was made at all is seen from outside too.
    assert_eq!(lab.machines(), ["lab-a", "lab-b", "lab-d"]);
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn what_a_node_cannot_have_is_said_in_the_summary() {
    if lacks(&[]) {
        return;
    }
    let lab = lab("on_error: stop", &[&node("a")]);
    let asks = "schema_version: 1\nplatform: { packages: [orch-nowhere] }\nconfig: {}\n";
    lab.write("specs/plain.yaml", asks);
    let told = lab.orch("create -M lab -H father").ends_with(0);
    told.says("skipped: package orch-nowhere (not installable here)").says("1 node: 1 changed");
    lab.orch(DESTROY).ends_with(0);
}

#[test]
fn with_on_error_stop_nothing_is_started_after_a_failure() {
    if lacks(&[]) {
        return;
    }
    let nodes = [node("a"), failing("b"), node("c")];
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let lab = lab("on_error: stop, parallelism: 1", &nodes);
    let partly = lab.orch(CREATE).ends_with(2);
    assert_statuses(&partly, &[("a", "changed"), ("b", "failed"), ("c", "skipped")]);
    assert_eq!(lab.machines(), ["lab-a", "lab-b"]);
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn with_on_error_rollback_what_the_run_made_is_taken_down_and_what_was_there_stays() {
    if lacks(&[]) {
        return;
    }
    let nodes = [node("old"), node("new"), failing("bad")];
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let lab = lab("on_error: rollback, parallelism: 1", &nodes);
    lab.orch(&format!("{CREATE} --only old")).ends_with(0);
    let failed = lab.orch(CREATE).ends_with(1);
    assert_eq!(failed.json()["rolled_back"], true, "{}", failed.stdout);
    assert_eq!(lab.machines(), ["lab-old"]);
    lab.orch(&format!("{STATUS} --only old")).ends_with(0);
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn every_exit_code_means_what_it_says() {
    if lacks(&[]) {
        return;
    }
    let lab = lab("on_error: continue", &[&node("a"), &failing("b")]);
    for (words, code) in [
        ("validate -M lab -H father", 0),
        ("plan -M lab -H father", 0),
        (STATUS, 1),
        ("create -M lab -H father --only b", 1),
        (CREATE, 2),
        (STATUS, 2),
        ("create -M lab -H father --only a --json", 0),
        ("create -M lab -H nowhere", 3),
        ("create -M unheard-of -H father", 3),
        ("create --no-such-option", 3),
        ("destroy -M lab -H father", 3),
        ("exec -M lab -H father --only a --timeout 1s -- sleep 30", 4),
        (DESTROY, 0),
        (STATUS, 1),
    ] {
        lab.orch(words).ends_with(code);
    }
    assert_nothing_is_left(&lab);
}

#[test]
fn a_configuration_that_takes_longer_than_it_may_ends_with_four_and_heals() {
    if lacks(&[Need::Root]) {
        return;
    }
    let lab = lab("on_error: stop", &[&node("a")]);
    lab.orch(CREATE).ends_with(0);
    lab.write("specs/plain.yaml", &spec("as wanted now"));
    lab.write_nodes("timeouts: { create: 30s, boot: 20s, config: 2s, destroy: 20s }", &[&node("a")]);
    let gate = Gate::hold(&lab, "lab-a");
    let late = lab.orch(CREATE).ends_with(4).every_node_is("failed");
    assert_eq!(late.node("a")["timed_out"], true);
    drop(gate);
    lab.orch(CREATE).ends_with(0);
    lab.orch(STATUS).ends_with(0);
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}
