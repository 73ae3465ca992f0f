//! Files that were made to eat time or memory are refused before they do.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::time::{Duration, Instant};

use orch_secrets::rules::{FILE, Rules, RulesError};
use orch_secrets::{Keyring, SopsError, SopsFile};

/// Metadata that are enough to be read.
const METADATA: &str = "sops: {age: [{recipient: x, enc: y}], mac: z, lastmodified: w}\n";

/// Lies too deep, is too much, or has too many parts: which limit it is that refuses it.
fn too_large(name: &str, text: &str, what: &'static str) {
    refused(name, text, &SopsError::TooLarge { file: name.to_owned(), what });
}

/// The reader of YAML has a limit of its own, and says the place.
fn no_yaml(text: &str, line: usize, column: usize) {
    let file = String::from("x.yaml");
    refused("x.yaml", text, &SopsError::Malformed { file, line, column, what: "this is not YAML" });
}

fn refused(name: &str, text: &str, expected: &SopsError) {
    let start = Instant::now();
    let error = SopsFile::parse(name, text.as_bytes()).unwrap_err();
    assert_eq!(error, *expected);
    assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
}

const DEEP: &str = "lists and maps lie too deep in each other";
const MANY: &str = "it has too many values";
const MANY_IN_YAML: &str = "it has too many values, aliases written out";

#[test]
fn what_lies_too_deep_is_refused() {
    no_yaml(&format!("a: {}{}\n{METADATA}", "[".repeat(5000), "]".repeat(5000)), 1, 104);
    too_large("x.json", &format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000)), DEEP);
    let block: String = (0..300).map(|depth| " ".repeat(depth) + "a:\n").collect();
    no_yaml(&format!("{block}{METADATA}"), 101, 101);
}

#[test]
fn aliases_that_stand_for_too_much_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb += &format!("a{level}: &a{level} [{before}]\n");
    }
    too_large("x.yaml", &format!("{bomb}{METADATA}"), MANY_IN_YAML);
    let long = format!("a: &a {}\nb: [{}]\n{METADATA}", "x".repeat(1 << 20), "*a, ".repeat(10_000));
    too_large("x.yaml", &long, "it has too much text, aliases written out");
    let what = MANY_IN_YAML;
    let expected = RulesError::Unreadable(SopsError::TooLarge { file: FILE.to_owned(), what });
    assert_eq!(Rules::parse(&bomb), Err(expected));
}

#[test]
fn what_has_too_many_parts_is_refused() {
    too_large("x.yaml", &format!("a: [{}]\n{METADATA}", "1, ".repeat(300_000)), MANY_IN_YAML);
    too_large("x.yaml", &format!("{}{METADATA}", "#\n".repeat(300_000)), MANY_IN_YAML);
    too_large("x.json", &format!("{{\"a\": [{}1]}}", "1,".repeat(300_000)), MANY);
    let lines = |line: fn(usize) -> String| (0..300_000).map(line).collect::<Vec<_>>().concat();
    too_large("x.env", &lines(|at| format!("k{at}=\n")), MANY);
    too_large("x.ini", &lines(|at| format!("k{at}=\n")), MANY);
    too_large("x.ini", &lines(|at| format!("[s{at}]\n")), MANY);
    let readers = "{recipient: x, enc: y}, ".repeat(2000);
    too_large(
        "x.yaml",
        &format!("sops: {{age: [{readers}], mac: z, lastmodified: w}}\n"),
        "it has too many recipients",
    );
}

#[test]
fn a_file_of_a_limit_each_way_is_read_in_good_time() {
    let start = Instant::now();
    let many: Vec<String> = (0..50_000).map(|at| format!("# said\nkey{at}: [a, b] # more\n")).collect();
    let rule = METADATA.replace("mac:", "encrypted_comment_regex: nothing, mac:");
    let file = SopsFile::parse("x.yaml", (many.concat() + &rule).as_bytes());
    assert!(file.is_err_and(|error| matches!(error, SopsError::TooLarge { .. })));
    let file = SopsFile::parse("x.yaml", (many[..20_000].concat() + &rule).as_bytes()).unwrap();
    // Nobody can open it, which is found out at once.
    assert!(matches!(file.open(&Keyring::default()), Err(SopsError::NoIdentity { .. })));
    assert_eq!(file.paths().len(), 40_000);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
