//! A node that another tool deployed: what it ran is where it goes back to, wherever that lies.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::scene::{NixLab, skips};

const CREATE: &str = "create -M lab -H father --json";
const CONFIG: &str = "config -M lab -H father --json";
const BROKEN: &str = r#"version = "3"; activate = "echo broken > /etc/made-by; exit 7";"#;

/// What another tool put there: a system that is not in the store, and that nothing leads to but what runs.
const SWITCH: &str = "#!/bin/sh\n\
    [ \"$1\" = test ] || exit 0\n\
    echo another tool > /etc/made-by\n\
    ln -sfn /var/lib/deployed/system /run/current-system\n";

/// Puts the system of another tool onto a node, and has it run.
fn deploy(root: &Path) -> PathBuf {
    let folder = root.join("var/lib/deployed/system/bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("switch-to-configuration");
    fs::write(&program, SWITCH).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let running = root.join("run/current-system");
    let _ = fs::remove_file(&running);
    symlink("/var/lib/deployed/system", &running).unwrap();
    "/var/lib/deployed/system".into()
}

/// A lab with a node that runs and knows nothing of Nix yet.
fn bare(module: &str) -> NixLab {
    let scene = NixLab::with_nodes("", &["web"], module);
    let spec = "schema_version: 1\n";
    scene.lab.write("specs/nixos.yaml", spec);
    scene.orch(CREATE).ends_with(0).every_node_is("changed");
    scene.lab.write("specs/nixos.yaml", "schema_version: 1\nnixos: { modules: [modules/web] }\n");
    scene
}

#[test]
fn a_first_rollout_that_fails_goes_back_to_what_another_tool_deployed() {
    if skips() {
        return;
    }
    let scene = bare(BROKEN);
    let deployed = deploy(&scene.lab.root("lab-web"));
    let failed = scene.orch(CONFIG).ends_with(1).every_node_is("failed");
    assert_eq!(scene.runs("web"), Some(deployed.clone()), "{}", failed.stdout);
    assert_eq!(
        scene.boots("web"),
        None,
        "it booted nothing that a profile leads to, and does so now: {}",
        failed.stdout
    );
    assert_eq!(scene.read("web", "etc/made-by").as_deref(), Some("another tool\n"), "{}", failed.stdout);
    failed.says(&format!("read back: runs {}, boots nothing", deployed.display()));
}

#[test]
fn so_does_one_onto_a_node_whose_profile_leads_elsewhere_than_to_what_runs() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], r#"version = "1";"#);
    scene.orch(CREATE).ends_with(0).every_node_is("changed");
    let booted = scene.boots("web").unwrap();
    let deployed = deploy(&scene.lab.root("lab-web"));
    scene.module(BROKEN);
    let failed = scene.orch(CONFIG).ends_with(1).every_node_is("failed");
    assert_eq!(scene.runs("web"), Some(deployed.clone()), "{}", failed.stdout);
    assert_eq!(scene.boots("web"), Some(booted.clone()), "{}", failed.stdout);
    assert_eq!(scene.read("web", "etc/made-by").as_deref(), Some("another tool\n"), "{}", failed.stdout);
    failed.says(&format!("read back: runs {}, boots {}", deployed.display(), booted.display()));
}
