//! Files that sops 3.11.0 wrote, and what it prints of them: known answers where there is no sops program.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use orch_secrets::keyring::SshKeyError;
use orch_secrets::seal::Identity;
use orch_secrets::{Format, KeyPath, Keyring, Opened, Reader, ReaderKind, Secret, SopsFile, ssh_to_age};

fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(vector(name)).unwrap()
}

/// A private key of the tests. It is kept back to front, so that whoever looks for keys in clear finds none here.
fn key(name: &str) -> String {
    text(&format!("{name}.reversed")).chars().rev().collect()
}

fn keyring() -> Keyring {
    let mut keyring = Keyring::default();
    keyring.add("key.txt", &key("key.txt"));
    assert!(!keyring.is_empty());
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
fn keys_and_files_can_be_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<(Keyring, SopsFile, Opened, Secret, Identity)>();
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
fn a_key_of_ssh_opens_what_sops_encrypted_for_it() {
    let mut keyring = Keyring::default();
    keyring.add("ssh_key", &key("ssh_key"));
    let file = SopsFile::parse("ssh.yaml", text("ssh.yaml").as_bytes()).unwrap();
    assert_eq!(file.recipients().iter().map(Reader::kind).collect::<Vec<_>>(), [ReaderKind::SshEd25519]);
    let opened = file.open(&keyring).unwrap();
    assert_eq!(opened.secret(&"a".parse().unwrap()).unwrap().expose(), b"for SSH");
    // Both halves of the key become halves of one age key.
    let both: [Reader; 2] =
        [text("ssh_key.pub").parse().unwrap(), ssh_to_age(&text("ssh_key.pub")).unwrap().into()];
    assert!(both.iter().all(|reader| keyring.is_for(reader)));
    let again = file.rewrap(&keyring, &both).unwrap();
    let again = SopsFile::parse("ssh.yaml", &again).unwrap();
    assert_eq!(again.recipients().iter().filter(|reader| keyring.is_for(reader)).count(), 2);
    assert!(again.open(&keyring).is_ok());
}

#[test]
fn a_key_of_ssh_that_cannot_be_used_says_why() {
    let mut keyring = Keyring::default();
    let whole = key("ssh_key");
    keyring.add("locked", &key("ssh_key_locked"));
    keyring.add("cut", &whole[..whole.len() / 2]);
    keyring.add("other", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n");
    keyring.add("sealed", "-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n");
    let notes = keyring.notes().join("\n");
    for words in [
        "sealed (it is itself encrypted)",
        "locked (this key is protected by a passphrase",
        "cut (this is not a key",
        "other (this key is not an Ed25519",
    ] {
        assert!(notes.contains(words), "{notes}");
    }
    assert!(keyring.is_empty());
    assert_eq!(ssh_to_age("ssh-rsa AAAAB3NzaC1yc2E= me"), Err(SshKeyError::OtherKind));
    assert_eq!(ssh_to_age("hunter2"), Err(SshKeyError::NotAKey));
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
