//! How secrets come to a node: what it lacks it says, and of what it is brought it keeps what it asked for.

use std::fs;

use orch_model::ApplyStatus;
use orch_secrets::Bundle;
use orch_secrets::seal::Identity;

use crate::common::secrets::{MARKER, Site, held, secret};
use crate::common::{Tree, of};

#[test]
fn what_is_lacking_is_said_and_nothing_else_is_touched() {
    let (tree, mut site) = (Tree::new(), Site::with_one());
    site.role.files = vec![crate::common::file("/etc/motd", "hello")];
    let answer = tree.bring(&site, None);
    assert_eq!(answer.code(), Some(6), "{:?}", answer.0);
    assert_eq!(answer.lacking(), ["db".parse().unwrap()]);
    assert_eq!(answer.keys().host_key, None);
    assert!(answer.keys().settled);
    assert!(!tree.at("/etc/motd").exists());
    for name in ["spec.json", "incoming.json", "complete.json", "failed.json", "secrets.age"] {
        assert!(!tree.at("/var/lib/orch").join(name).exists(), "{name}");
    }
    assert_eq!(tree.bring(&site, None).keys(), answer.keys(), "the keys stay the same");
}

#[test]
fn a_changed_value_makes_only_that_one_lacking() {
    let secrets = ["a", "b", "c"].map(|name| secret(name, &format!("/run/secrets/{name}")));
    let (tree, mut site) = (Tree::new(), Site::of(secrets.into()));
    tree.give(&site);
    site.set("b", "another");
    let answer = tree.bring(&site, None);
    assert_eq!((answer.code(), answer.lacking()), (Some(6), vec!["b".parse().unwrap()]));
    let parcel = site.pack(&answer.lacking(), &answer.keys().age);
    let report = tree.bring(&site, Some(parcel)).report();
    let changed: Vec<_> =
        report.resources.iter().filter(|one| one.changed).map(|one| one.name.as_str()).collect();
    assert_eq!(changed, ["b"]);
    assert_eq!(
        (tree.read("/run/secrets/b"), tree.read("/run/secrets/a")),
        ("another".into(), format!("{MARKER} of a"))
    );
}

#[test]
fn a_parcel_for_another_node_is_refused() {
    let (tree, site) = (Tree::new(), Site::with_one());
    let names = tree.bring(&site, None).lacking();
    let other = Identity::generate().recipient().to_string().parse().unwrap();
    let answer = tree.bring(&site, Some(site.pack(&names, &other)));
    assert_eq!(answer.code(), Some(1));
    let why = answer.report().error.unwrap();
    assert!(why.contains("not sealed for this identity"), "{why}");
    assert!(!tree.at("/run/secrets").exists() && !tree.at("/var/lib/orch/secrets.age").exists());
}

#[test]
fn what_nobody_asked_for_is_not_kept() {
    let (tree, site) = (Tree::new(), Site::with_one());
    let age = tree.bring(&site, None).keys().age;
    let mut bundle = Bundle::default();
    bundle.insert("db".parse().unwrap(), held(&site.values["db"]));
    bundle.insert("other".parse().unwrap(), held("planted"));
    assert_eq!(tree.bring(&site, Some(bundle.pack(&age).unwrap())).code(), Some(0));
    assert_eq!(tree.held_names(), ["db"]);
    // Another value than the one that is asked for is none.
    let mut next = site.clone();
    next.set("db", "new");
    let mut bundle = Bundle::default();
    bundle.insert("db".parse().unwrap(), held("planted"));
    let answer = tree.bring(&next, Some(bundle.pack(&age).unwrap()));
    assert_eq!((answer.code(), answer.lacking()), (Some(6), vec!["db".parse().unwrap()]));
    let before = held(&format!("{MARKER} of db"));
    assert_eq!(tree.vault().get(&"db".parse().unwrap(), &before.digest), Some(&before.value));
    assert_eq!(tree.held_names(), ["db"]);
}

#[test]
fn a_secret_that_was_not_opened_for_the_configuration_fails_alone() {
    let (tree, mut site) =
        (Tree::new(), Site::of(vec![secret("a", "/run/secrets/a"), secret("b", "/run/secrets/b")]));
    site.values.remove("a");
    let report = tree.give(&site);
    let why = of(&report.resources, "secret", "a").detail.clone().unwrap();
    assert_eq!(why, "the value of this secret was not opened where the configuration was made");
    assert!(of(&report.resources, "secret", "b").changed);
    assert_eq!(report.status, ApplyStatus::Failed);
}

#[test]
fn what_the_node_cannot_open_any_more_is_asked_for_again() {
    let (tree, site) = (Tree::new(), Site::with_one());
    tree.give(&site);
    let path = tree.at("/var/lib/orch/secrets.age");
    let mut sealed = fs::read(&path).unwrap();
    *sealed.last_mut().unwrap() ^= 1;
    fs::write(&path, sealed).unwrap();
    assert_eq!(tree.bring(&site, None).lacking(), ["db".parse().unwrap()]);
    assert_eq!(tree.give(&site).status, ApplyStatus::Complete);
    fs::remove_file(&path).unwrap();
    assert_eq!(tree.bring(&site, None).code(), Some(6));
    assert_eq!(tree.give(&site).status, ApplyStatus::Complete);
    assert_eq!(tree.held_names(), ["db"]);
}

#[test]
fn a_configuration_that_is_applied_by_hand_has_what_the_node_holds() {
    let (tree, site) = (Tree::new(), Site::with_one());
    let config = serde_json::to_vec(&site.config()).unwrap();
    let report = crate::common::report(&tree.run(&["apply", "-"], &config));
    assert!(report.error.unwrap().contains("the value of this secret was not brought to this node"));
    tree.give(&site);
    fs::remove_file(tree.at("/run/secrets/db")).unwrap();
    let report = crate::common::report(&tree.run(&["apply", "-"], &config));
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert_eq!(tree.read("/run/secrets/db"), format!("{MARKER} of db"));
}

#[test]
fn a_bare_configuration_is_no_delivery() {
    let tree = Tree::new();
    let output = tree.run(&["push"], &serde_json::to_vec(&Site::with_one().config()).unwrap());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(output.stdout.is_empty());
}
