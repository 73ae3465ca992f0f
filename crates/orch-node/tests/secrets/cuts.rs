//! A cut at any moment: the next push heals it.

use std::fs;
use std::time::Duration;

use orch_model::{ApplyStatus, Digest};

use crate::common::Tree;
use crate::common::secrets::{MARKER, Site, secret};

/// What a draft of this name is called.
fn draft(name: &str) -> String {
    format!(".orch-{}", Digest::of_bytes(name.as_bytes()).short())
}

#[test]
fn what_a_cut_left_half_written_is_healed_and_taken_away() {
    let (tree, site) = (Tree::new(), Site::with_one());
    tree.give(&site);
    fs::remove_file(tree.at("/run/secrets/db")).unwrap();
    tree.write(&format!("/run/secrets/{}", draft("db")), &MARKER[..5]);
    for name in ["secrets.age", "age.key", "keys.json", "secrets.json"] {
        tree.write(&format!("/var/lib/orch/{}", draft(name)), "half");
    }
    assert_eq!(tree.give(&site).status, ApplyStatus::Complete);
    assert_eq!(tree.read("/run/secrets/db"), format!("{MARKER} of db"));
    assert!(!tree.at("/run/secrets").join(draft("db")).exists());
    // One that was never finished, of a secret that nobody asks for any more.
    tree.write(&format!("/run/secrets/{}", draft("db")), MARKER);
    tree.give(&Site::of(Vec::new()));
    assert_eq!(tree.files_with(MARKER), Vec::<String>::new());
}

#[test]
fn a_push_that_is_cut_at_any_moment_is_healed_by_the_next() {
    let secrets = (0..10).map(|n| secret(&format!("s{n}"), &format!("/run/secrets/{n}")));
    let site = Site::of(secrets.collect());
    for step in 0..40 {
        let tree = Tree::new();
        let first = tree.bring(&site, None);
        let parcel = site.pack(&first.lacking(), &first.keys().age);
        let mut child = tree.start(&["push"], &site.delivery(Some(parcel)));
        std::thread::sleep(Duration::from_micros(400 * step));
        child.kill().unwrap();
        child.wait().unwrap();
        let report = tree.give(&site);
        assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
        assert_eq!(tree.files_with(MARKER).len(), 10);
        assert_eq!(tree.bring(&site, None).keys(), first.keys());
        assert!(!tree.snapshot().iter().any(|line| line.contains("/.orch-")));
    }
}

#[test]
fn a_node_that_is_cut_while_it_is_brought_another_value_starts_with_the_one_that_it_had() {
    let (tree, mut site) = (Tree::new(), Site::with_one());
    tree.give(&site);
    let before = ["spec.json", "complete.json"].map(|name| tree.read(&format!("/var/lib/orch/{name}")));
    site.set("db", "another");
    // A folder where the configuration is laid down: the push ends between the two files, as a cut would end it.
    tree.folder("/var/lib/orch/incoming.json");
    let first = tree.bring(&site, None);
    let parcel = site.pack(&first.lacking(), &first.keys().age);
    assert_ne!(tree.bring(&site, Some(parcel)).code(), Some(0));
    let after = ["spec.json", "complete.json"].map(|name| tree.read(&format!("/var/lib/orch/{name}")));
    assert_eq!((after, tree.held_names()), (before, vec!["db".into(), "db".into()]));
    fs::remove_dir_all(tree.at("/run/secrets")).unwrap();
    let output = tree.run(&["unseal"], &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(tree.read("/run/secrets/db"), format!("{MARKER} of db"));
    fs::remove_dir(tree.at("/var/lib/orch/incoming.json")).unwrap();
    let again = tree.bring(&site, None);
    assert_eq!(again.code(), Some(0), "what was brought was kept: {:?}", again.0);
    assert_eq!((tree.read("/run/secrets/db"), tree.held_names()), ("another".into(), vec!["db".into()]));
}

#[test]
fn a_worker_that_is_cut_before_it_forgets_is_followed_by_one_that_does() {
    let (tree, site) = (Tree::new(), Site::with_one());
    tree.give(&site);
    let sealed = fs::read(tree.at("/var/lib/orch/secrets.age")).unwrap();
    let none = Site::of(Vec::new());
    tree.give(&none);
    // As it is before that: what is held is whole, and the work is not written down as done.
    fs::write(tree.at("/var/lib/orch/secrets.age"), sealed).unwrap();
    fs::rename(tree.at("/var/lib/orch/complete.json"), tree.at("/var/lib/orch/failed.json")).unwrap();
    tree.give(&none);
    assert_eq!(tree.held_names(), Vec::<String>::new());
}
