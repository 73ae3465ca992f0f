//! Files that sops 3.11.0 wrote, and what it prints of them: known answers where there is no sops program.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use orch_secrets::{Format, KeyPath, Keyring, SopsFile};

fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

fn keyring() -> Keyring {
    let mut keyring = Keyring::default();
    keyring.add("key.txt", &fs::read_to_string(vector("key.txt")).unwrap());
    keyring
}

#[test]
fn files_of_sops_open_to_what_sops_prints() {
    for name in ["all.yaml", "all.json", "all.env", "all.ini", "all.key"] {
        let file = SopsFile::parse(name, &fs::read(vector(name)).unwrap()).unwrap();
        let opened = file.open(&keyring()).unwrap();
        let ours = match file.format() {
            Format::Binary => opened.secret(&KeyPath::default()).unwrap(),
            _ => opened.to_json().unwrap(),
        };
        let plain = fs::read(vector(&format!("{name}.plain"))).unwrap();
        assert_eq!(String::from_utf8_lossy(ours.expose()), String::from_utf8_lossy(&plain), "{name}");
    }
}

#[test]
fn a_file_names_its_values_and_its_readers_without_a_key() {
    let file = SopsFile::parse("all.yaml", &fs::read(vector("all.yaml")).unwrap()).unwrap();
    let paths: Vec<String> = file.paths().iter().map(ToString::to_string).collect();
    let expected = [
        "father.token",
        "father.count",
        "empty",
        "list[0]",
        "list[1]",
        "list[2]",
        "when",
        "clear_unencrypted",
        "second",
    ];
    assert_eq!(paths, expected);
    let opened = file.open(&keyring()).unwrap();
    for path in file.paths() {
        assert!(opened.secret(&path).is_ok(), "{path}");
    }
    let readers: Vec<String> = file.recipients().iter().map(ToString::to_string).collect();
    assert_eq!(readers, ["age1lzd99uklcjnc0e7d860axevet2cz99ce9pq6tzuzd05l5nr28ams36nvun"]);
    assert_eq!(file.recipients().threshold, 1);
}

#[test]
fn a_digest_follows_the_value_its_path_and_its_context() {
    let digest = |name: &str, path: &str, context: &str| {
        let file = SopsFile::parse(name, &fs::read(vector(name)).unwrap()).unwrap();
        file.open(&keyring()).unwrap().digest(&path.parse().unwrap(), context)
    };
    let one = digest("all.yaml", "father.token", "web01");
    assert!(one.is_some());
    assert_eq!(one, digest("all.yaml", "father.token", "web01"));
    assert_ne!(one, digest("all.yaml", "father.token", "web02"));
    assert_ne!(one, digest("all.yaml", "list[0]", "web01"));
    assert_ne!(one, digest("all.json", "father.token", "web01"), "another file has another data key");
    assert_eq!(digest("all.yaml", "father", "web01"), None);
    assert!(digest("all.key", "", "web01").is_some());
}
