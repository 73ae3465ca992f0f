//! Nothing outside of the state directory and the namespaces changes on this computer.
//!
//! The whole test runs in a process with network, mount and pid namespaces of its own, so that nobody else's changes are
//! taken for ours.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{
    Lab, Need, ORCH, Outcome, Running, all_processes, assert_nothing_is_left, command_of, is_there, lacks,
};

const VARIABLE: &str = "ORCH_LAB_OUTSIDE";
const TEST: &str = "outside::nothing_outside_changes_while_nodes_run_and_after_they_are_gone";

/// Folders that are compared as they are.
const SHARED: [&str; 2] = ["/etc", "/var/lib"];
/// Folders that others work in at the same time, and that this test therefore has as its own, empty.
const OWN: [&str; 7] = ["/tmp", "/run", "/var/tmp", "/dev/shm", "/home", "/root", "/srv"];

/// All of those, but for the one that the program under test is in.
fn own_folders() -> impl Iterator<Item = &'static str> {
    OWN.into_iter().filter(|folder| Path::new(folder).is_dir() && !Path::new(ORCH).starts_with(folder))
}

/// What can be seen of a computer from outside of its machines, a line for each thing.
#[derive(Debug, PartialEq, Eq)]
struct Outside {
    network: BTreeSet<String>,
    mounts: BTreeSet<String>,
    files: BTreeSet<String>,
    processes: BTreeSet<String>,
}

impl Outside {
    fn look(lab: &Lab) -> Self {
        let own = lab.site.parent().unwrap();
        Self { network: network(), mounts: mounts(), files: files(own), processes: processes() }
    }
}

/// What tells of the network. A computer without one of them is told by the others alone, and that is said.
const TOOLS: [&str; 4] = ["ip", "nft", "iptables-save", "sysctl"];

/// Interfaces, addresses, routes, neighbours and rules of firewalls, by every tool that there is.
fn network() -> BTreeSet<String> {
    let questions: [&[&str]; 7] = [
        &["ip", "-o", "link"],
        &["ip", "-o", "addr"],
        &["ip", "route", "show", "table", "all"],
        &["ip", "rule"],
        &["nft", "list", "ruleset"],
        &["iptables-save"],
        &["sysctl", "-n", "net.ipv4.ip_forward"],
    ];
    let mut seen = BTreeSet::new();
    for argv in questions {
        let Ok(output) = Command::new(argv[0]).args(&argv[1..]).stderr(Stdio::null()).output() else {
            continue;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // The clock of an `iptables-save` is not a rule.
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        seen.extend(lines.map(|line| format!("{}: {line}", argv.join(" "))));
    }
    seen
}

fn mounts() -> BTreeSet<String> {
    fs::read_to_string("/proc/self/mountinfo").unwrap().lines().map(str::to_owned).collect()
}

/// Every process of this pid namespace, by its command line. The dead are left out: this process, which would have to
/// bury them, is a test.
fn processes() -> BTreeSet<String> {
    all_processes().into_iter().map(|pid| format!("{pid} {}", command_of(pid))).collect()
}

/// What lies where programs leave things, but for the folder that is the lab's own.
fn files(own: &Path) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for folder in SHARED.into_iter().chain(own_folders()) {
        walk(Path::new(folder), own, 3, &mut seen);
    }
    seen
}

fn walk(folder: &Path, own: &Path, depth: usize, seen: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(found) = path.symlink_metadata() else { continue };
        if path == own {
            continue;
        }
        // When a folder was last written is told by what is in it.
        let written = if found.is_dir() { 0 } else { found.mtime() };
        seen.insert(format!("{} {:o} {} {written}", path.display(), found.mode(), found.ino()));
        if found.is_dir() && depth > 0 {
            walk(&path, own, depth - 1, seen);
        }
    }
}

#[test]
fn nothing_outside_changes_while_nodes_run_and_after_they_are_gone() {
    if env::var_os(VARIABLE).is_some() {
        return compare();
    }
    if lacks(&[Need::Root, Need::Program("unshare"), Need::Program("ip"), Need::Program("nft")]) {
        return;
    }
    for tool in TOOLS.into_iter().filter(|tool| !is_there(tool)) {
        eprintln!("{TEST}: what `{tool}` would tell is not compared: it is not here");
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(env::current_exe().unwrap()).args([TEST, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(VARIABLE, "1");
    Outcome::of(&mut command, "in namespaces of its own").ends_with(0).says("1 passed");
}

/// Looks before, while nodes run, and after.
fn compare() {
    for folder in own_folders() {
        let mut mount = Command::new("mount");
        Outcome::of(mount.args(["-t", "tmpfs", "none", folder]), "mount").ends_with(0);
    }
    let lab = Lab::with_sample_site();
    assert_that_changes_are_seen(&lab);
    let before = Outside::look(&lab);
    lab.orch("create -M nested-test -H father").ends_with(0);
    lab.orch("status -M nested-test -H father").ends_with(0);
    let during = Outside::look(&lab);
    assert_eq!(during.network, before.network, "the network of this computer is as it was");
    assert_eq!(during.mounts, before.mounts, "its mounts are as they were");
    assert_same_files(&during, &before);
    let machines = lab.state.join("local/father/nested-test-").display().to_string();
    let ours = |process: &str| process.contains(&machines) || process.contains("sshd");
    let more: Vec<_> = during.processes.difference(&before.processes).collect();
    assert!(more.len() >= 4, "two machines with a server each: {more:#?}");
    assert!(more.iter().all(|process| ours(process)), "only machines are more: {more:#?}");

    lab.orch("destroy -M nested-test -H father --yes").ends_with(0);
    let after = Outside::look(&lab);
    assert_eq!((&after.network, &after.mounts), (&before.network, &before.mounts));
    assert_same_files(&after, &before);
    assert_eq!(after.processes, before.processes, "no process is left");
    assert_nothing_is_left(&lab);
}

/// The control: whatever could change is seen to change.
fn assert_that_changes_are_seen(lab: &Lab) {
    let before = Outside::look(lab);
    let run = |argv: &[&str]| {
        Outcome::of(Command::new(argv[0]).args(&argv[1..]), &argv.join(" ")).ends_with(0);
    };
    // Each kind of change of the network by itself, so that none hides behind another.
    for (change, back) in NETWORK_CHANGES {
        let was = network();
        run(change);
        assert_ne!(network(), was, "{change:?} is seen");
        run(back);
    }
    let place = lab.site.display().to_string();
    run(&["mount", "-t", "tmpfs", "none", &place]);
    let file = Path::new("/dev/shm/control");
    fs::write(file, "").unwrap();
    let sleep = Running::start(Command::new("sleep").arg("60"), "sleep");
    let changed = Outside::look(lab);
    assert_ne!(changed.mounts, before.mounts);
    assert!(changed.files != before.files && changed.processes != before.processes);
    drop(sleep);
    fs::remove_file(file).unwrap();
    run(&["umount", &place]);
    assert_eq!(Outside::look(lab), before, "and back");
}

/// A change of each kind, and what undoes it.
const NETWORK_CHANGES: [(&[&str], &[&str]); 5] = [
    (&["ip", "link", "add", "control0", "type", "bridge"], &["ip", "link", "delete", "control0"]),
    (
        &["ip", "addr", "add", "192.0.2.1/24", "dev", "lo"],
        &["ip", "addr", "del", "192.0.2.1/24", "dev", "lo"],
    ),
    (
        &["ip", "route", "add", "unreachable", "192.0.2.0/24"],
        &["ip", "route", "del", "unreachable", "192.0.2.0/24"],
    ),
    (&["ip", "rule", "add", "pref", "99", "lookup", "99"], &["ip", "rule", "del", "pref", "99"]),
    (&["nft", "add", "table", "inet", "control"], &["nft", "delete", "table", "inet", "control"]),
];

#[track_caller]
fn assert_same_files(now: &Outside, before: &Outside) {
    let changed: Vec<_> = now.files.symmetric_difference(&before.files).collect();
    assert!(changed.is_empty(), "these files are others: {changed:#?}");
}
