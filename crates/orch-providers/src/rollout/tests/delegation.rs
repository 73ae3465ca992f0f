//! Rollouts that programs of others do. These write down how they were run; what they say of themselves is not believed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use orch_model::system::SystemView;
use orch_run::{Configured, TransportError};

use super::super::{Outside, RolloutLimits, RolloutSettings};
use super::script::{DISKS, NEW, Node, OLD, Store, applied_as, config_with, json, quick, view};

/// A folder with a program that writes down its words, and ends so.
fn program(name: &str, code: i32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    let kept = folder.path().join("words").display().to_string();
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"NIX_SSHOPTS=$NIX_SSHOPTS\" \"$@\" > '{kept}'\necho its last word >&2\nexit {code}\n"
    );
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn words(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join("words")).unwrap().lines().map(str::to_owned).collect()
}

fn outside() -> Outside {
    Outside {
        config: "/state/ssh/config".into(),
        alias: "web".into(),
        user: "ops".into(),
        address: Some("10.0.0.5".into()),
        port: 2222,
        identity: "/state/keys/id".into(),
    }
}

async fn delegate(node: &Node, more: &str, folder: &Path) -> Result<Configured, TransportError> {
    let limits =
        RolloutLimits { activate: Duration::from_millis(50), reboot: Duration::from_millis(50), ..quick() };
    let settings = RolloutSettings { systems: Arc::new(Store), limits, programs: Some(folder.to_owned()) };
    node.roll_out_as(&config_with(more), settings, Some(outside())).await
}

const REBUILD: &str = ", rollout: nixos-rebuild";
const INSTALL: &str = ", install: nixos-anywhere";

#[tokio::test]
async fn nixos_rebuild_is_given_the_system_and_the_way_and_the_node_is_read_afterwards() {
    let folder = program("nixos-rebuild", 0);
    let node = Node::default()
        .on("look", json(&view(OLD, OLD)))
        .on("look", json(&view(NEW, NEW)))
        .on("push", applied_as(&config_with(REBUILD)));
    let done = delegate(&node, REBUILD, folder.path()).await.unwrap();
    assert!(done.changed);
    assert_eq!(done.notes, [format!("read back: runs and boots {NEW}")]);
    let expected = ["NIX_SSHOPTS=-F /state/ssh/config", "switch", "--no-reexec", "--store-path", NEW];
    assert_eq!(words(folder.path())[..5], expected);
    assert_eq!(words(folder.path())[5..], ["--target-host", "web", "--sudo"]);
    assert_eq!(node.asked(), ["look", "anew", "look", "push"]);
}

#[tokio::test]
async fn what_a_program_calls_done_is_held_against_what_is_read() {
    let folder = program("nixos-rebuild", 0);
    let node = Node::default().on("look", json(&view(OLD, OLD)));
    let error = delegate(&node, REBUILD, folder.path()).await.unwrap_err().to_string();
    assert!(error.contains(&format!("not what was read: read back: runs and boots {OLD}")), "{error}");
}

#[tokio::test]
async fn a_program_that_fails_or_is_not_there_is_told_with_its_last_words_and_what_was_read() {
    let folder = program("nixos-rebuild", 3);
    let node = Node::default().on("look", json(&view(OLD, OLD)));
    let error = delegate(&node, REBUILD, folder.path()).await.unwrap_err();
    assert!(error.to_string().contains("`nixos-rebuild` failed"), "{error}");
    assert!(error.to_string().contains(&format!("read back: runs and boots {OLD}")), "{error}");
    assert_eq!(error.evidence(), ["its last word"]);

    let nothing = tempfile::tempdir().unwrap();
    let error = delegate(&node, REBUILD, nothing.path()).await.unwrap_err().to_string();
    assert!(error.contains("`nixos-rebuild` cannot be run here"), "{error}");
}

#[tokio::test]
async fn a_machine_without_nixos_is_installed_where_its_spec_says_so_and_one_with_it_is_not() {
    let folder = program("nixos-anywhere", 0);
    let bare = SystemView { running: None, boot_default: None, nix: None, ..view(OLD, OLD) };
    let node = Node::default()
        .on("look", json(&bare))
        .on("look", json(&view(NEW, NEW)))
        .on("push", applied_as(&config_with(INSTALL)));
    delegate(&node, INSTALL, folder.path()).await.unwrap();
    let expected = ["--store-paths", DISKS, NEW, "--copy-host-keys", "-i", "/state/keys/id", "-p", "2222"];
    assert_eq!(words(folder.path())[1..9], expected);
    assert_eq!(words(folder.path())[9..], ["--target-host", "ops@10.0.0.5"]);

    let there =
        Node::default().on("look", json(&view(NEW, NEW))).on("push", applied_as(&config_with(INSTALL)));
    delegate(&there, INSTALL, tempfile::tempdir().unwrap().path()).await.unwrap();
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_with_all_that_it_started_before_the_node_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nixos-rebuild");
    let kept = folder.path().join("pid").display().to_string();
    // What it started lives on where only the program itself is ended.
    let text = format!("#!/bin/sh\nsleep 600 &\necho $! > '{kept}'\nwait\n");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let node = Node::default().on("look", json(&view(OLD, OLD)));
    let settings =
        RolloutSettings { systems: Arc::new(Store), limits: quick(), programs: Some(folder.path().into()) };
    let time = Duration::from_secs(1);
    let config = config_with(REBUILD);
    let ended = node.roll_out_within(&config, settings, Some(outside()), time).await;
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("took longer than") && error.contains("read back: runs"), "{error}");
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}
