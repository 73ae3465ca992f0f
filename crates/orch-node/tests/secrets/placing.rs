//! Where a secret appears, and as whose.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use orch_model::ApplyStatus;

use crate::common::secrets::{MARKER, Site, secret};
use crate::common::{Tree, file, is_root, of, user};

#[test]
fn a_secret_arrives_with_its_owner_and_its_mode() {
    let (tree, mut site) = (Tree::new(), Site::with_one());
    site.role.secrets[0].owner = "nobody".parse().unwrap();
    site.role.secrets[0].mode = "0440".parse().unwrap();
    let report = tree.give(&site);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert_eq!(tree.read("/run/secrets/db"), format!("{MARKER} of db"));
    assert_eq!(tree.mode("/run/secrets/db"), 0o440);
    if is_root() {
        let found = fs::metadata(tree.at("/run/secrets/db")).unwrap();
        assert_eq!((found.uid(), found.gid()), (65_534, 65_534));
    }
    for (name, mode) in [("age.key", 0o400), ("secrets.age", 0o600), ("keys.json", 0o600)] {
        assert_eq!(tree.mode(&format!("/var/lib/orch/{name}")), mode, "{name}");
    }
}

#[test]
fn bytes_arrive_as_they_are_also_none_at_all() {
    let (tree, mut site) = (Tree::new(), Site::with_one());
    for value in ["", "\n", "a\0b", &"x".repeat(100_000)] {
        site.set("db", value);
        assert_eq!(tree.give(&site).status, ApplyStatus::Complete);
        assert_eq!(tree.read("/run/secrets/db"), value);
        assert!(!tree.give(&site).changed());
    }
}

#[test]
fn a_second_push_changes_nothing_and_needs_no_parcel() {
    let (tree, site) = (Tree::new(), Site::with_one());
    assert!(tree.give(&site).changed());
    let before = fs::metadata(tree.at("/run/secrets/db")).unwrap();
    let sealed = fs::metadata(tree.at("/var/lib/orch/secrets.age")).unwrap();
    let again = tree.bring(&site, None);
    assert_eq!(again.code(), Some(0), "{:?}", again.0);
    assert!(!again.report().changed());
    assert_eq!(fs::metadata(tree.at("/run/secrets/db")).unwrap().ino(), before.ino());
    assert_eq!(fs::metadata(tree.at("/var/lib/orch/secrets.age")).unwrap().ino(), sealed.ino());
}

#[test]
fn what_differs_is_said_without_a_word_of_the_value_and_healed() {
    let (tree, site) = (Tree::new(), Site::with_one());
    tree.give(&site);
    let path = tree.at("/run/secrets/db");
    let spoil: [(&str, &dyn Fn()); 4] = [
        ("its value differs", &|| fs::write(&path, "x").unwrap()),
        ("its value differs", &|| fs::write(&path, format!("{MARKER} of dB")).unwrap()),
        ("its mode is 0644", &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap()),
        ("it is not there", &|| fs::remove_file(&path).unwrap()),
    ];
    for (words, spoil) in spoil {
        let config = serde_json::to_vec(&site.config()).unwrap();
        spoil();
        let seen = String::from_utf8(tree.run(&["inspect"], &config).stdout).unwrap();
        assert!(seen.contains(words), "{seen}");
        let report = tree.bring(&site, None).report();
        assert_eq!(of(&report.resources, "secret", "db").detail.as_deref(), Some(words));
        assert_eq!(tree.read("/run/secrets/db"), format!("{MARKER} of db"));
        assert_eq!(tree.mode("/run/secrets/db"), 0o400);
    }
}

#[test]
fn what_is_planted_at_its_path_is_replaced_or_refused_and_never_written_through() {
    let (tree, site) = (Tree::new(), Site::with_one());
    let shadow = tree.read("/etc/shadow");
    tree.link("/run/secrets/db", "/etc/shadow");
    assert_eq!(tree.give(&site).status, ApplyStatus::Complete);
    assert!(!tree.at("/run/secrets/db").is_symlink());
    assert_eq!(tree.read("/etc/shadow"), shadow);

    let tree = Tree::new();
    tree.folder("/run/secrets/db/of-somebody");
    let report = tree.give(&site);
    assert!(report.error.unwrap().contains("a folder is in its place"));
    assert!(tree.at("/run/secrets/db/of-somebody").is_dir());

    let tree = Tree::new();
    tree.folder("/tmp");
    fs::set_permissions(tree.at("/tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    tree.link("/tmp/a", "/etc");
    let report = tree.give(&Site::of(vec![secret("db", "/tmp/a/db")]));
    assert!(report.error.unwrap().contains("somebody other than root"));
    assert!(!tree.at("/etc/db").exists());
}

#[test]
fn a_secret_goes_nowhere_where_something_else_belongs() {
    for (path, words) in [
        ("/proc/sys/x", "belongs to the kernel"),
        ("/dev/shm/x", "belongs to the kernel"),
        ("/var/lib/orch/x", "orch's own"),
        ("/run/orch/secrets/other", "orch's own"),
        ("/etc/shadow", "access.users"),
        ("/etc/ssh/ssh_host_ed25519_key", "orch's own"),
        ("/root/.ssh/authorized_keys", "access.users"),
        ("/opt/taken", "has a file there too"),
    ] {
        let (tree, mut site) = (Tree::new(), Site::of(vec![secret("db", path)]));
        site.role.files = vec![file("/opt/taken", "mine")];
        site.role.users = vec![user("root")];
        let report = tree.give(&site);
        let why = of(&report.resources, "secret", "db").detail.clone().unwrap();
        assert!(why.contains(words), "{path}: {why}");
        assert_eq!(tree.files_with(MARKER), Vec::<String>::new(), "{path}");
    }
    let (tree, site) =
        (Tree::new(), Site::of(vec![secret("a", "/run/secrets/x"), secret("b", "/var/run/secrets/x")]));
    tree.folder("/run");
    tree.link("/var/run", "../run");
    assert!(tree.give(&site).error.unwrap().contains("two secrets there"));
}

#[test]
fn a_secret_is_put_into_no_folder_in_which_somebody_else_could_exchange_it() {
    let way_out = "give it a folder of its own below `/run/secrets`";
    let put = |mode: u32, uid: u32, owner: &str| {
        let (tree, mut site) = (Tree::new(), Site::of(vec![secret("db", "/run/app/db")]));
        site.role.secrets[0].owner = owner.parse().unwrap();
        tree.folder("/run/app");
        fs::set_permissions(tree.at("/run/app"), fs::Permissions::from_mode(mode)).unwrap();
        if is_root() {
            std::os::unix::fs::chown(tree.at("/run/app"), Some(uid), None).unwrap();
        }
        let report = tree.give(&site);
        let is_there = tree.at("/run/app/db").exists();
        assert_eq!(report.status == ApplyStatus::Complete, is_there, "{report:?}");
        assert_eq!(tree.files_with(MARKER).len(), usize::from(is_there));
        report.error.unwrap_or_default()
    };
    for mode in [0o777, 0o775, 0o757] {
        let why = put(mode, 0, "root");
        assert!(why.contains(&format!("its mode is {mode:04o}")) && why.contains(way_out), "{why}");
    }
    for mode in [0o700, 0o755, 0o1777, 0o1775] {
        assert_eq!(put(mode, 0, "root"), "", "{mode:o}");
    }
    if !is_root() {
        println!("skipped in part: needs root");
        return;
    }
    let why = put(0o755, 1234, "root");
    assert!(why.contains("it belongs to 1234") && why.contains(way_out), "{why}");
    assert!(put(0o1777, 1234, "nobody").contains("it belongs to 1234"), "whose it is can take anything away");
    assert_eq!(put(0o700, 65_534, "nobody"), "");
}

#[test]
fn an_owner_that_is_not_there_is_a_failure_in_words() {
    let (tree, mut site) = (Tree::new(), Site::with_one());
    site.role.secrets[0].owner = "ghost".parse().unwrap();
    assert!(tree.give(&site).error.unwrap().contains("there is no account `ghost` to own it"));
    assert!(!tree.at("/run/secrets/db").exists());
}
