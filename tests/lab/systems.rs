//! The system tests of the sample site: ST-2, ST-3, ST-4, ST-6 and ST-8.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Footprint, Lab, Need, Outcome, Timeline, destroy_twice, lacks, most_at_once};

/// Everything that these look at from outside is root's.
const NEEDS: [Need; 2] = [Need::Root, Need::Ssh];

/// Asserts that a node reached what its spec says by itself: its own name, its own configuration, its own health.
#[track_caller]
fn assert_ready(lab: &Lab, manifest: &str, node: &str) {
    let status = lab.orch(&format!("status -M {manifest} -H father --only {node} --json")).ends_with(0);
    let standing = status.every_node_is("as-wanted").node(node);
    assert_eq!((&standing["state"], &standing["config"]), (&"running".into(), &"current".into()));
    assert!(standing["health"].as_array().is_some_and(|checks| !checks.is_empty()), "{standing:#}");
    let root = lab.root(&format!("{manifest}-{node}"));
    let complete = fs::read_to_string(root.join("var/lib/orch/complete.json")).unwrap();
    assert!(complete.contains("\"complete\""), "{complete}");
    assert!(!root.join("var/lib/orch/failed.json").exists());
    assert_eq!(fs::read_to_string(root.join("etc/hostname")).unwrap().trim(), node);
}

/// The configuration for `ssh` and `scp`, in a file.
fn ssh_config(lab: &Lab, manifest: &str) -> PathBuf {
    let config = lab.orch(&format!("ssh-config -M {manifest} -H father")).ends_with(0);
    let path = lab.site.join("nodes.conf");
    fs::write(&path, config.stdout).unwrap();
    path
}

/// Runs the `ssh` that everybody has.
#[track_caller]
fn ssh(config: &Path, node: &str, argv: &[&str]) -> String {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(config).arg(node).arg("--").args(argv);
    Outcome::of(&mut ssh, &format!("ssh {node} {argv:?}")).ends_with(0).stdout.trim().to_owned()
}

#[test]
fn st_2_a_pushed_node_becomes_what_its_spec_says_over_ssh_alone_and_is_gone_after_destroy() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    lab.orch("create -M single-node-push -H father --json").ends_with(0).every_node_is("changed");
    assert_ready(&lab, "single-node-push", "test-vm");
    let root = lab.root("single-node-push-test-vm");
    let motd = fs::read_to_string(root.join("etc/motd")).unwrap();
    assert!(motd.starts_with("Made by orch."), "{motd}");
    let keys = fs::read_to_string(root.join("home/deploy/.ssh/authorized_keys")).unwrap();
    assert!(keys.contains("alice@laptop") && keys.contains("bob@desk"), "every key of the site: {keys}");
    let accounts = fs::read_to_string(root.join("etc/passwd")).unwrap();
    assert!(["ops:", "deploy:"].iter().all(|name| accounts.contains(name)), "{accounts}");
    let server = fs::read_to_string(root.join("var/log/sshd.log")).unwrap();
    assert!(server.contains("Accepted publickey for ops"), "it was configured over SSH: {server}");
    destroy_twice(&lab, "single-node-push");
}

#[test]
fn st_3_a_parent_is_ready_before_its_child_is_made_ssh_goes_through_it_and_the_child_goes_first() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    let made = lab.orch("create -M nested-test -H father --json").ends_with(0).every_node_is("changed");
    Timeline::of(&made.json()).assert_in_order(&[
        ("inner-pve", "create"),
        ("inner-pve", "configure"),
        ("test-vm", "create"),
        ("test-vm", "configure"),
    ]);
    for node in ["inner-pve", "test-vm"] {
        assert_ready(&lab, "nested-test", node);
    }

    let config = ssh_config(&lab, "nested-test");
    assert_eq!(ssh(&config, "inner-pve", &["hostname"]), "inner-pve");
    assert_eq!(ssh(&config, "test-vm", &["hostname"]), "test-vm");
    let connection = ssh(&config, "test-vm", &["printenv", "SSH_CONNECTION"]);
    let came_from = connection.split(' ').next().unwrap().to_owned();
    let addresses = ssh(&config, "inner-pve", &["hostname", "-I"]);
    assert!(
        addresses.split_whitespace().any(|own| own == came_from),
        "who connects to test-vm is inner-pve: {came_from} of {addresses}"
    );
    let sent = lab.site.join("sent");
    fs::write(&sent, "from the driver\n").unwrap();
    let mut scp = Command::new("scp");
    scp.arg("-q").arg("-F").arg(&config).arg(&sent).arg("test-vm:received");
    Outcome::of(&mut scp, "scp").ends_with(0);
    assert_eq!(ssh(&config, "test-vm", &["cat", "received"]), "from the driver");
    let own = lab.orch("ssh -M nested-test -H father test-vm -- cat received").ends_with(0);
    assert_eq!(own.stdout, "from the driver\n");

    let gone = destroy_twice(&lab, "nested-test");
    gone.assert_in_order(&[("test-vm", "destroy"), ("inner-pve", "destroy")]);
}

#[test]
fn st_4_three_levels_are_made_from_the_outside_in_and_destroyed_from_the_inside_out() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    let levels = ["level-1", "level-2", "level-3"];
    let made = lab.orch("create -M deep-test -H father --json").ends_with(0).every_node_is("changed");
    let outside_in: Vec<_> =
        levels.iter().flat_map(|level| [(*level, "create"), (*level, "configure")]).collect();
    Timeline::of(&made.json()).assert_in_order(&outside_in);
    let config = ssh_config(&lab, "deep-test");
    for level in levels {
        assert_ready(&lab, "deep-test", level);
        assert_eq!(ssh(&config, level, &["hostname"]), level);
    }
    // Each level sees the one below it, by its address in its own network.
    for (above, below) in [("level-1", "level-2"), ("level-2", "level-3")] {
        let address = ssh(&config, below, &["hostname", "-I"]);
        let address = address.split_whitespace().next().unwrap().to_owned();
        let greeting = ssh(&config, above, &["timeout", "5", "bash", "-c", &greet(&address)]);
        assert!(greeting.starts_with("SSH-2.0"), "{above} reaches {below}: {greeting}");
    }
    let gone = destroy_twice(&lab, "deep-test");
    gone.assert_in_order(&[("level-3", "destroy"), ("level-2", "destroy"), ("level-1", "destroy")]);
}

/// What `bash` reads the greeting of an SSH server with, quoted once for the shell of `ssh`.
fn greet(address: &str) -> String {
    format!("'exec 3<>/dev/tcp/{address}/22; head -n1 <&3'")
}

#[test]
fn st_6_peers_are_made_at_once_on_the_same_host_and_each_is_ready() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    let made = lab.orch("create -M workers -H father --json").ends_with(0).every_node_is("changed");
    let made = made.json();
    let timeline = Timeline::of(&made);
    assert_eq!(most_at_once(&timeline.all("create")), 3, "no peer waits for another: {made:#}");
    for node in ["worker-1", "worker-2", "worker-3"] {
        assert_ready(&lab, "workers", node);
        let record =
            fs::read_to_string(lab.machine(&format!("workers-{node}")).join("machine.json")).unwrap();
        assert!(record.contains("\"inside\": null"), "it lives on the host itself: {record}");
    }
    destroy_twice(&lab, "workers");
}

#[test]
fn st_8_a_second_create_finds_what_is_there_and_touches_nothing() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    let create = "create -M single-node-push -H father --json";
    lab.orch(create).ends_with(0).every_node_is("changed");
    let before = Footprint::of(&lab, "single-node-push-test-vm");
    lab.orch(create).ends_with(0).every_node_is("unchanged");
    lab.orch("config -M single-node-push -H father --json").ends_with(0).every_node_is("unchanged");
    assert_eq!(Footprint::of(&lab, "single-node-push-test-vm"), before);
    assert_eq!(lab.machines(), ["single-node-push-test-vm"], "there is no second machine");
    destroy_twice(&lab, "single-node-push");
}
