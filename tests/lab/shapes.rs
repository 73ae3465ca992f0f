//! Fleets of several shapes: many peers, houses with children, some of a fleet, other sizes.

use std::fs;

use crate::common::{
    Lab, Need, TIMEOUTS, Timeline, assert_nothing_is_left, lacks, most_at_once, name_of, node, spec,
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

/// How much memory the machine may use, where there is a control group that says so.
fn memory_limit(lab: &Lab) -> Option<u64> {
    let boot = fs::read_to_string(lab.machine("lab-a").join("boot.json")).unwrap();
    let boot: serde_json::Value = serde_json::from_str(&boot).unwrap();
    let groups = boot["cgroups"].as_array().into_iter().flatten().filter_map(|group| group.as_str());
    let files = ["memory.limit_in_bytes", "memory.max"];
    groups
        .flat_map(|group| files.map(|file| format!("{group}/{file}")))
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}
