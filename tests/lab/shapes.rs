//! Fleets of several shapes: many peers, houses with children, some of a fleet, other sizes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{
    Lab, Need, ORCH, Outcome, TIMEOUTS, Timeline, assert_nothing_is_left, lacks, most_at_once, name_of, node,
    skip, spec,
};

const CREATE: &str = "create -M lab -H father --json";
const STATUS: &str = "status -M lab -H father --json";
const DESTROY: &str = "destroy -M lab -H father --yes --json";

fn house(name: &str) -> String {
    node(name).replace("type: vm", "type: pve")
}

fn child(name: &str, of: &str) -> String {
    format!("{}, parent: {of}", node(name))
}

#[test]
fn twenty_peers_are_made_at_once_and_the_report_shows_it() {
    if lacks(&[]) {
        return;
    }
    let lab =
        Lab::with_nodes(&format!("parallelism: 20, {TIMEOUTS}"), &[&format!("{}, count: 20", node("peer"))]);
    let page = lab.site.join("run.html");
    let made =
        lab.orch(&format!("{CREATE} --report {}", page.display())).ends_with(0).every_node_is("changed");
    let timeline = Timeline::of(&made.json());
    let creates = timeline.all("create");
    assert_eq!(creates.len(), 20);
    assert!(most_at_once(&creates) >= 10, "peers wait for nobody: {creates:#?}");

    let page = fs::read_to_string(page).unwrap();
    for number in 1..=20 {
        assert!(page.contains(&format!("peer-{number}")), "the page has peer-{number}");
    }
    for action in ["create", "configure"] {
        let bars = page.matches(&format!("<i class=\"{action}\" style=")).count();
        assert_eq!(bars, 20, "the timeline has each `{action}`");
    }
    assert!(!page.contains("http://") && !page.contains("https://"), "the page needs nothing from elsewhere");

    let named = lab.orch("exec -M lab -H father --json -- hostname").ends_with(0).json();
    let nodes = named["nodes"].as_array().unwrap();
    assert!(nodes.iter().all(|node| node.to_string().contains(&name_of(node))), "each is itself: {named:#}");
    lab.orch(CREATE).ends_with(0).every_node_is("unchanged");
    lab.orch(DESTROY).ends_with(0).every_node_is("changed");
    assert_nothing_is_left(&lab);
}

#[test]
fn peers_under_different_parents_wait_for_their_own_parent_alone() {
    if lacks(&[]) {
        return;
    }
    let nodes =
        [house("left"), house("right"), child("l-1", "left"), child("l-2", "left"), child("r-1", "right")];
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let lab = Lab::with_nodes(TIMEOUTS, &nodes);
    let made = lab.orch(CREATE).ends_with(0).every_node_is("changed");
    let timeline = Timeline::of(&made.json());
    for (parent, child) in [("left", "l-1"), ("left", "l-2"), ("right", "r-1")] {
        timeline.assert_in_order(&[(parent, "configure"), (child, "create")]);
        let record = fs::read_to_string(lab.machine(&format!("lab-{child}")).join("machine.json")).unwrap();
        assert!(record.contains(&format!("\"inside\": \"lab-{parent}\"")), "{record}");
    }
    let [one, two] = ["l-1", "l-2"].map(|name| timeline.step(name, "create"));
    assert!(one.overlaps(two), "children of one parent are made at once: {one:?} {two:?}");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    let gone = Timeline::of(&lab.orch(DESTROY).ends_with(0).json());
    for (parent, child) in [("left", "l-1"), ("left", "l-2"), ("right", "r-1")] {
        gone.assert_in_order(&[(child, "destroy"), (parent, "destroy")]);
    }
    assert_nothing_is_left(&lab);
}

#[test]
fn children_of_one_parent_are_made_while_another_parent_never_gets_ready() {
    if lacks(&[]) {
        return;
    }
    let left = house("left").replace("spec: plain", "spec: broken");
    let nodes = [left, house("right"), child("l-1", "left"), child("r-1", "right")];
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let lab = Lab::with_nodes(&format!("on_error: continue, {TIMEOUTS}"), &nodes);
    // A folder is in the way of the file.
    lab.write("specs/broken.yaml", &spec("x").replace("/etc/motd", "/var/log"));
    let partly = lab.orch(CREATE).ends_with(2);
    for (name, status) in [("left", "failed"), ("l-1", "skipped"), ("right", "changed"), ("r-1", "changed")] {
        assert_eq!(partly.node(name)["status"], status, "{name}: {}", partly.stdout);
    }
    assert_eq!(lab.machines(), ["lab-left", "lab-r-1", "lab-right"]);
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn only_the_nodes_that_are_named_are_made_and_destroyed() {
    if lacks(&[]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&house("house"), &child("inner", "house"), &node("other")]);
    lab.orch(&format!("{CREATE} --only other")).ends_with(0);
    assert_eq!(lab.machines(), ["lab-other"]);
    lab.orch(&format!("{CREATE} --only house+")).ends_with(0);
    assert_eq!(lab.machines(), ["lab-house", "lab-inner", "lab-other"]);
    lab.orch(&format!("{DESTROY} --only inner")).ends_with(0);
    assert_eq!(lab.machines(), ["lab-house", "lab-other"]);
    let status = lab.orch(STATUS).ends_with(2);
    assert_eq!(status.node("inner")["condition"], "missing");
    lab.orch(&format!("{CREATE} --only nobody")).ends_with(3).says("nobody");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn memory_is_changed_while_a_node_runs_and_a_disk_grows_with_everything_on_it() {
    if lacks(&[Need::Root]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a")]);
    lab.orch(CREATE).ends_with(0);
    let init = lab.init("lab-a");
    lab.write("presets/tiny.yaml", "cores: 1\nmemory: 768\ndisk: 1\n");
    let status = lab.orch(STATUS).ends_with(2);
    assert_eq!(status.node("a")["condition"], "differs");
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    assert_eq!(lab.init("lab-a"), init, "it went on running");
    if let Some(limit) = memory_limit(&lab) {
        assert_eq!(limit, 768 << 20);
    }

    let kept = lab.root("lab-a").join("var/lib/kept");
    fs::write(&kept, "kept").unwrap();
    let size = |lab: &Lab| {
        rustix::fs::statvfs(lab.root("lab-a").join("var")).map(|disk| disk.f_blocks * disk.f_frsize).unwrap()
    };
    let before = size(&lab);
    lab.write("presets/tiny.yaml", "cores: 1\nmemory: 768\ndisk: 2\n");
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    if lab.machine("lab-a").join("disk.img").exists() {
        assert!(size(&lab) > before + before / 2, "{} grew to {}", before, size(&lab));
    }
    assert_eq!(fs::read_to_string(lab.root("lab-a").join("var/lib/kept")).unwrap(), "kept");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch(CREATE).ends_with(0).every_node_is("unchanged");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn a_size_whose_limits_are_refused_is_not_written_down() {
    if lacks(&[Need::Root, Need::Program("unshare"), Need::Program("mount")]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a")]);
    lab.orch(CREATE).ends_with(0);
    let Some(group) = memory_group(&lab) else { return skip("memory has no limit here") };
    lab.write("presets/tiny.yaml", "cores: 1\nmemory: 768\ndisk: 1\n");
    // In a mount namespace of its own, nothing can be written to the machine's control group.
    let script = r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(group);
    command.arg(ORCH).arg("--site").arg(&lab.site).arg("--state").arg(&lab.state);
    let refused = Outcome::of(command.args(CREATE.split_whitespace()), CREATE).ends_with(1);
    refused.says("cannot limit what it uses");
    assert_eq!(lab.orch(STATUS).ends_with(2).node("a")["condition"], "differs");
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    assert_eq!(memory_limit(&lab), Some(768 << 20));
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn what_ran_inside_of_a_node_whose_disk_grows_runs_again_afterwards() {
    if lacks(&[Need::Root]) {
        return;
    }
    let outer = house("outer").replace("preset: tiny", "preset: large");
    let middle = format!("{}, parent: outer", house("middle"));
    let lab = Lab::with_nodes(TIMEOUTS, &[&outer, &middle, &child("inner", "middle")]);
    lab.write("presets/large.yaml", "cores: 1\nmemory: 512\ndisk: 1\n");
    lab.orch(CREATE).ends_with(0);
    if !lab.machine("lab-outer").join("disk.img").exists() {
        return skip("disks have no limit here");
    }
    let machines = ["lab-outer", "lab-middle", "lab-inner"];
    let before = machines.map(|machine| lab.init(machine));
    lab.write("presets/large.yaml", "cores: 1\nmemory: 512\ndisk: 2\n");
    let grown = lab.orch(CREATE).ends_with(0);
    assert_eq!(
        ["outer", "middle", "inner"].map(|name| grown.node(name)["status"].clone()),
        ["changed", "unchanged", "unchanged"]
    );
    for (machine, before) in machines.into_iter().zip(before) {
        assert_ne!(lab.init(machine), before, "{machine} was off meanwhile");
    }
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    lab.orch(CREATE).ends_with(0).every_node_is("unchanged");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

/// The files that say how much memory a control group may use, in both generations.
const MEMORY_LIMITS: [&str; 2] = ["memory.limit_in_bytes", "memory.max"];

/// The control group that limits the memory of the machine, where there is one.
fn memory_group(lab: &Lab) -> Option<PathBuf> {
    let boot = fs::read_to_string(lab.machine("lab-a").join("boot.json")).unwrap();
    let boot: serde_json::Value = serde_json::from_str(&boot).unwrap();
    let groups = boot["cgroups"].as_array().into_iter().flatten().filter_map(|group| group.as_str());
    groups.map(PathBuf::from).find(|group| MEMORY_LIMITS.iter().any(|file| group.join(file).exists()))
}

/// How much memory the machine may use, where there is a control group that says so.
fn memory_limit(lab: &Lab) -> Option<u64> {
    let group = memory_group(lab)?;
    MEMORY_LIMITS.iter().find_map(|file| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok())
}
