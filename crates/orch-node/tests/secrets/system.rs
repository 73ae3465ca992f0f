//! The secrets of a NixOS node: there before its new system is, and kept for the system before as long as that may be
//! needed.

use std::fs;
use std::os::unix::fs::symlink;

use orch_model::{ApplyStatus, StorePath};

use crate::common::secrets::{Answer, MARKER, Site, secret};
use crate::common::{Tree, of, user};

const SYSTEM: &str = "/nix/store/00000000000000000000000000000001-system";
const OTHER: &str = "/nix/store/00000000000000000000000000000002-system";

/// Has the tree run one system and boot another.
fn stand_on(tree: &Tree, running: &str, default: &str) {
    fs::create_dir_all(tree.at("/nix/var/nix/profiles")).unwrap();
    fs::create_dir_all(tree.at("/run")).unwrap();
    for (link, system) in [("/run/current-system", running), ("/nix/var/nix/profiles/system", default)] {
        fs::create_dir_all(tree.at(system)).unwrap();
        let _ = fs::remove_file(tree.at(link));
        symlink(system, tree.at(link)).unwrap();
    }
}

fn with_system(mut site: Site, system: &str) -> Site {
    site.system = Some(system.parse::<StorePath>().unwrap());
    site
}

fn before_system(tree: &Tree, site: &Site) -> Answer {
    let args = ["push", "--before-system"];
    let first = Answer(tree.run(&args, &site.delivery(None)));
    if first.code() != Some(6) {
        return first;
    }
    let parcel = site.pack(&first.lacking(), &first.keys().age);
    Answer(tree.run(&args, &site.delivery(Some(parcel))))
}

#[test]
fn secrets_are_there_before_the_system_and_only_the_system_makes_it_complete() {
    let tree = Tree::new();
    stand_on(&tree, OTHER, OTHER);
    let site = with_system(Site::with_one(), SYSTEM);
    let before = before_system(&tree, &site);
    assert_eq!((before.code(), before.report().status), (Some(0), ApplyStatus::Complete));
    assert!(tree.read("/run/secrets/db").contains(MARKER));
    let applied = |tree: &Tree| tree.run(&["has", &site.config().digest().to_string()], b"").stdout;
    assert_eq!(applied(&tree), b"no\n");
    let whole = tree.give(&site);
    assert_eq!(whole.status, ApplyStatus::Failed);
    assert!(whole.error.as_ref().unwrap().contains("only a rollout can bring it"), "{whole:?}");
    for (running, default) in [(SYSTEM, OTHER), (OTHER, SYSTEM)] {
        stand_on(&tree, running, default);
        assert_eq!(tree.give(&site).status, ApplyStatus::Failed, "it must run and be booted");
    }
    stand_on(&tree, SYSTEM, SYSTEM);
    let whole = tree.give(&site);
    assert_eq!(whole.status, ApplyStatus::Complete, "{whole:?}");
    assert!(!of(&whole.resources, "system", SYSTEM).changed);
    assert_eq!(applied(&tree), b"yes\n");
}

#[test]
fn what_is_asked_for_no_more_stays_until_the_new_system_runs() {
    let tree = Tree::new();
    stand_on(&tree, OTHER, OTHER);
    assert_eq!(tree.give(&with_system(Site::with_one(), OTHER)).status, ApplyStatus::Complete);
    let site = with_system(Site::of(vec![secret("new", "/run/secrets/new")]), SYSTEM);
    assert_eq!(before_system(&tree, &site).code(), Some(0));
    assert!(tree.at("/run/secrets/db").exists() && tree.at("/run/secrets/new").exists());
    // The node is rebooted, on the system before.
    fs::remove_dir_all(tree.at("/run/secrets")).unwrap();
    assert!(tree.run(&["unseal"], b"").status.success());
    assert!(tree.at("/run/secrets/db").exists());
    stand_on(&tree, SYSTEM, SYSTEM);
    assert_eq!(tree.give(&site).status, ApplyStatus::Complete);
    assert!(!tree.at("/run/secrets/db").exists() && tree.at("/run/secrets/new").exists());
}

#[test]
fn all_but_secrets_is_left_to_the_system() {
    let tree = Tree::new();
    stand_on(&tree, SYSTEM, SYSTEM);
    let mut site = with_system(Site::with_one(), SYSTEM);
    site.role.users = vec![user("ops")];
    let report = tree.give(&site);
    let kinds: Vec<&str> = report.resources.iter().map(|resource| resource.kind.as_str()).collect();
    assert_eq!(kinds, ["secrets", "secret", "system"], "{report:?}");
    assert!(!tree.read("/etc/passwd").contains("ops"));
    site.system = None;
    let report = tree.give(&site);
    assert!(report.resources.iter().any(|resource| resource.kind == "user"), "{report:?}");
}
