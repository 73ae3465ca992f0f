//! Secrets that nobody asks for any more.

use std::fs;
use std::os::unix::fs::MetadataExt;

use orch_model::ApplyStatus;

use crate::common::secrets::{MARKER, Site, secret};
use crate::common::{Tree, file, of};

fn two() -> Site {
    Site::of(vec![secret("a", "/run/secrets/a"), secret("b", "/run/secrets/b")])
}

#[test]
fn a_secret_that_is_removed_is_gone_from_its_path_and_from_what_is_held() {
    let tree = Tree::new();
    tree.give(&two());
    assert_eq!(tree.held_names(), ["a", "b"]);
    let mut one = two();
    one.role.secrets.pop();
    one.values.remove("b");
    let report = tree.give(&one);
    let removed = of(&report.resources, "secrets", "removed");
    assert_eq!(removed.detail.as_deref(), Some("nobody asks for `/run/secrets/b` any more"));
    assert!(!tree.at("/run/secrets/b").exists());
    assert_eq!(
        (tree.held_names(), tree.read("/run/secrets/a")),
        (vec!["a".into()], format!("{MARKER} of a"))
    );
    assert!(!tree.give(&one).changed());

    let none = Site::of(Vec::new());
    assert_eq!(tree.give(&none).status, ApplyStatus::Complete);
    assert_eq!(tree.files_with(MARKER), Vec::<String>::new());
    for name in ["secrets.age", "secrets.json"] {
        assert!(!tree.at("/var/lib/orch").join(name).exists(), "{name}");
    }
    let report = tree.give(&none);
    assert!(report.resources.iter().all(|one| !one.kind.starts_with("secret")), "{report:?}");
}

#[test]
fn what_is_held_is_forgotten_only_once_the_configuration_is_true() {
    let tree = Tree::new();
    tree.give(&two());
    let mut none = Site::of(Vec::new());
    none.role.files = vec![file("/proc/impossible", "x")];
    assert_eq!(tree.give(&none).status, ApplyStatus::Failed);
    assert_eq!(tree.held_names(), ["a", "b"]);
    let back = tree.bring(&two(), None);
    assert_eq!(back.code(), Some(0), "the node goes back without being brought anything: {:?}", back.0);
    assert_eq!(tree.read("/run/secrets/b"), format!("{MARKER} of b"));
}

#[test]
fn what_is_there_instead_is_left_alone() {
    let tree = Tree::new();
    let secrets = ["a", "b", "c"].map(|name| secret(name, &format!("/run/secrets/{name}")));
    tree.give(&Site::of(secrets.into()));
    for name in ["a", "b", "c"] {
        fs::remove_file(tree.at("/run/secrets").join(name)).unwrap();
    }
    tree.folder("/run/secrets/a");
    tree.link("/run/secrets/b", "/etc/hosts");
    let mut next = Site::of(Vec::new());
    next.role.files = vec![file("/run/secrets/c", "of the configuration")];
    let report = tree.give(&next);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert!(tree.at("/run/secrets/a").is_dir() && tree.at("/run/secrets/b").is_symlink());
    assert_eq!(tree.read("/run/secrets/c"), "of the configuration");
    assert!(!tree.at("/var/lib/orch/secrets.json").exists());
}

#[test]
fn a_secret_that_moves_is_at_its_new_path_alone() {
    let tree = Tree::new();
    tree.folder("/run");
    tree.link("/var/run", "../run");
    tree.give(&Site::of(vec![secret("db", "/run/one/db")]));
    // The same place by another name: there is no moment in which it is not there.
    let before = fs::metadata(tree.at("/run/one/db")).unwrap().ino();
    let report = tree.give(&Site::of(vec![secret("db", "/var/run/one/db")]));
    assert_eq!(report.status, ApplyStatus::Complete);
    assert_eq!(fs::metadata(tree.at("/run/one/db")).unwrap().ino(), before);
    assert_eq!(tree.files_with(MARKER), ["/run/one/db"]);
    // Below what was a secret before.
    assert_eq!(tree.give(&Site::of(vec![secret("db", "/run/one/db/db")])).status, ApplyStatus::Complete);
    assert_eq!(tree.files_with(MARKER), ["/run/one/db/db"]);
    tree.give(&Site::of(vec![secret("db", "/run/two/db")]));
    assert_eq!(tree.files_with(MARKER), ["/run/two/db"]);
}
