//! What holds for every tree and every path.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::cell::Cell;

use orch_secrets::seal::Identity;
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, KeyPath, Keyring, Reader, Secret, SopsError, SopsFile, Step};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value as Json, json};

/// So many cases, or as many as are asked for by `PROPTEST_CASES`.
fn runner(cases: u32) -> TestRunner {
    let usual = Config { failure_persistence: None, ..Config::default() };
    let cases = std::env::var_os("PROPTEST_CASES").map_or(cases, |_| usual.cases);
    TestRunner::new(Config { cases, ..usual })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z]{1,6}", 1 => "\\PC{0,8}", 1 => Just(String::from("x_unencrypted")), 1 => Just(String::from("true"))]
}

fn tree() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        (-1e6..1e6_f64).prop_map(|number| json!(number)),
        "\\PC{0,12}".prop_map(Json::from),
        "[ -~\n\t]{0,40}".prop_map(Json::from),
        Just(json!("2024-01-02")),
        Just(json!("no")),
    ];
    let node = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(key().prop_filter("its own", |key| key != "sops"), node, 0..5)
        .prop_map(|map| Json::Object(map.into_iter().collect::<Map<_, _>>()))
}

#[test]
fn what_is_encrypted_opens_to_the_same_tree() {
    let identity = Identity::generate();
    let keyring = Keyring::of([identity.clone()]);
    let reader: Reader = identity.recipient().into();
    let formats = [(Format::Json, "t.json"), (Format::Yaml, "t.yaml")];
    let ran = runner(48).run(&tree(), |tree| {
        for (format, name) in formats {
            // JSON is YAML too.
            let plain = tree.to_string();
            let text = encrypt(name, format, plain.as_bytes(), &Policy::of([reader.clone()])).unwrap();
            let file = SopsFile::parse(name, &text).unwrap();
            let opened = file.open(&keyring).unwrap();
            let again: Json = serde_json::from_slice(opened.to_json().unwrap().expose()).unwrap();
            prop_assert!(same(&again, &tree), "{again}\n{tree}");
            let renewed = file.renew(&keyring, std::slice::from_ref(&reader)).unwrap();
            let renewed = SopsFile::parse(name, &renewed).unwrap().open(&keyring).unwrap();
            prop_assert_eq!(renewed.to_json().unwrap(), opened.to_json().unwrap());
            for path in file.paths() {
                prop_assert_eq!(path.to_string().parse::<KeyPath>(), Ok(path.clone()));
                prop_assert!(opened.secret(&path).is_ok());
            }
        }
        Ok(())
    });
    ran.unwrap();
}

/// Whether two trees say the same; a number is the same as a float and as an integer.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        // The reader of this test is not exact in the last digit.
        (Json::Number(a), Json::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= a.abs() * 1e-15
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (a, b) => a == b,
    }
}

#[test]
fn a_value_that_is_set_is_there_and_the_others_are_as_they_were() {
    let identity = Identity::generate();
    let keyring = Keyring::of([identity.clone()]);
    let policy = Policy::of([identity.recipient().into()]);
    let keys = prop::collection::vec("[a-c]{1}", 1..4);
    let (asked, written) = (Cell::new(0), Cell::new(0));
    let ran = runner(48).run(&(tree(), keys, "\\PC{0,20}"), |(tree, keys, value)| {
        let path = KeyPath::new(keys.into_iter().map(Step::Key).collect());
        for (format, name) in [(Format::Json, "t.json"), (Format::Yaml, "t.yaml")] {
            let text = encrypt(name, format, tree.to_string().as_bytes(), &policy).unwrap();
            let file = SopsFile::parse(name, &text).unwrap();
            // A list, a map or a text may stand in the way; then nothing is written at all.
            asked.set(asked.get() + 1);
            let changed = match file.set(&keyring, &path, &Secret::from(value.clone())) {
                Err(SopsError::Unsupported { .. } | SopsError::NotOneValue { .. }) => continue,
                changed => changed.unwrap(),
            };
            written.set(written.get() + 1);
            let before = file.open(&keyring).unwrap();
            let after = SopsFile::parse(name, &changed).unwrap().open(&keyring).unwrap();
            prop_assert_eq!(after.secret(&path).unwrap(), Secret::from(value.clone()));
            for other in file.paths().into_iter().filter(|other| *other != path) {
                prop_assert_eq!(after.secret(&other).unwrap(), before.secret(&other).unwrap());
            }
        }
        Ok(())
    });
    ran.unwrap();
    let (asked, written) = (asked.get(), written.get());
    assert!(written * 2 >= asked, "{written} of {asked} values were written");
}

#[test]
fn any_bytes_come_back_from_a_binary_file() {
    let identity = Identity::generate();
    let keyring = Keyring::of([identity.clone()]);
    let policy = Policy::of([identity.recipient().into()]);
    let ran = runner(64).run(&prop::collection::vec(any::<u8>(), 0..300), |bytes| {
        let text = encrypt("t.bin", Format::Binary, &bytes, &policy).unwrap();
        let opened = SopsFile::parse("t.bin", &text).unwrap().open(&keyring).unwrap();
        prop_assert_eq!(opened.secret(&KeyPath::default()).unwrap(), Secret::from(bytes));
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn every_path_can_be_written_and_read_again() {
    let step = prop_oneof![
        any::<String>().prop_map(Step::Key),
        any::<u16>().prop_map(|index| Step::Index(index.into()))
    ];
    let ran = runner(2000).run(&prop::collection::vec(step, 0..6), |steps| {
        let path = KeyPath::new(steps);
        let text = path.to_string();
        prop_assert!(!text.contains(char::is_control));
        prop_assert_eq!(text.parse::<KeyPath>(), Ok(path));
        Ok(())
    });
    ran.unwrap();
    runner(2000)
        .run(&"[a-z.\\[\\]\"'0-9#\\\\u{}]{0,20}", |text| {
            if let Ok(path) = text.parse::<KeyPath>() {
                prop_assert_eq!(path.to_string().parse::<KeyPath>(), Ok(path));
            }
            Ok(())
        })
        .unwrap();
}
