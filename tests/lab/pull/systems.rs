//! The system tests of the sample site in pull mode.

use super::{NEEDS, kept};
use crate::common::{Footprint, Lab, Timeline, destroy_twice, lacks};

/// Asserts that a node is what its spec says, and who brought it there.
#[track_caller]
fn assert_ready(lab: &Lab, manifest: &str, node: &str, mode: &str) {
    let status = lab.orch(&format!("status -M {manifest} -H father --only {node} --json")).ends_with(0);
    let standing = status.every_node_is("as-wanted").node(node);
    assert_eq!((&standing["state"], &standing["config"]), (&"running".into(), &"current".into()));
    let complete = kept(lab, &format!("{manifest}-{node}"), "complete.json");
    assert_eq!((&complete["mode"], &complete["status"]), (&mode.into(), &"complete".into()), "{complete:#}");
}

#[test]
fn st_1_a_node_fetches_what_its_token_says_and_becomes_it() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    lab.orch("create -M single-node -H father --json").ends_with(0).every_node_is("changed");
    let machine = "single-node-test-vm";
    // The token is for the spec of the node, and the server handed out that one.
    let enrolment = kept(&lab, machine, "enrolment.json");
    let token = enrolment["token"].as_str().unwrap();
    let claims = orch_model::token::read(token).unwrap();
    assert_eq!((claims.n.to_string().as_str(), claims.s.as_str()), ("single-node.test-vm@father", "base"));
    assert_eq!(kept(&lab, machine, "spec.json")["spec"], "base");
    assert_ready(&lab, "single-node", "test-vm", "pull");
    let status = lab.orch("status -M single-node -H father --json").node("test-vm");
    let reported = &status["pull"]["reported"];
    assert_eq!(reported["report"]["spec_digest"], kept(&lab, machine, "complete.json")["spec_digest"]);
    assert!(status["pull"]["fetched"]["at"].is_u64(), "{status:#}");
    let root = lab.root(machine);
    let motd = std::fs::read_to_string(root.join("etc/motd")).unwrap();
    assert!(motd.starts_with("Made by orch."), "{motd}");
    let keys = std::fs::read_to_string(root.join("home/deploy/.ssh/authorized_keys")).unwrap();
    assert!(keys.contains("alice@laptop") && keys.contains("bob@desk"), "{keys}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(root.join("var/lib/orch/enrolment.json")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o400);
    assert!(!lab.machine(machine).join("enrolment.json").exists(), "the driver keeps no token");
    destroy_twice(&lab, "single-node");
}

#[test]
fn st_8_a_second_create_of_a_node_that_pulls_touches_nothing() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    let create = "create -M single-node -H father --json";
    lab.orch(create).ends_with(0).every_node_is("changed");
    let before = Footprint::of(&lab, "single-node-test-vm");
    lab.orch(create).ends_with(0).every_node_is("unchanged");
    assert_eq!(Footprint::of(&lab, "single-node-test-vm"), before);
    assert_eq!(lab.machines(), ["single-node-test-vm"], "there is no second machine");
    destroy_twice(&lab, "single-node");
}

#[test]
fn st_5_infrastructure_is_pushed_and_what_lives_in_it_pulls_in_one_run() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    let made = lab.orch("create -M mixed-mode -H father --json").ends_with(0).every_node_is("changed");
    Timeline::of(&made.json()).assert_in_order(&[
        ("inner-pve", "create"),
        ("inner-pve", "configure"),
        ("app-vm", "create"),
        ("app-vm", "configure"),
    ]);
    assert_ready(&lab, "mixed-mode", "inner-pve", "push");
    assert_ready(&lab, "mixed-mode", "app-vm", "pull");
    assert_eq!(kept(&lab, "mixed-mode-app-vm", "spec.json")["spec"], "base");
    // Nothing that opens anything is left on the parent.
    let parent = lab.root("mixed-mode-inner-pve").join("var/lib/orch");
    assert!(!parent.join("enrolment.json").exists() && !parent.join("pull.json").exists());
    let gone = destroy_twice(&lab, "mixed-mode");
    gone.assert_in_order(&[("app-vm", "destroy"), ("inner-pve", "destroy")]);
}

#[test]
fn st_3_and_st_4_hold_where_every_node_pulls_at_two_and_three_levels() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    for (manifest, nodes) in
        [("nested-test", &["inner-pve", "test-vm"][..]), ("deep-test", &["level-1", "level-2", "level-3"])]
    {
        let made = lab.orch(&format!("create -M {manifest} -H father --mode pull --json")).ends_with(0);
        let outside_in: Vec<_> =
            nodes.iter().flat_map(|node| [(*node, "create"), (*node, "configure")]).collect();
        Timeline::of(&made.every_node_is("changed").json()).assert_in_order(&outside_in);
        for node in nodes {
            assert_ready(&lab, manifest, node, "pull");
        }
        let again = lab.orch(&format!("create -M {manifest} -H father --mode pull --json"));
        again.ends_with(0).every_node_is("unchanged");
        let gone = destroy_twice(&lab, manifest);
        let inside_out: Vec<_> = nodes.iter().rev().map(|node| (*node, "destroy")).collect();
        gone.assert_in_order(&inside_out);
    }
}
