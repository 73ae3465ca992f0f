//! Files that were made to eat time or memory are refused before they do.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::time::{Duration, Instant};

use orch_secrets::rules::Rules;
use orch_secrets::{Keyring, SopsError, SopsFile};

/// Metadata that are enough to be read.
const METADATA: &str = "sops: {age: [{recipient: x, enc: y}], mac: z, lastmodified: w}\n";

fn refused(name: &str, text: &str) {
    let start = Instant::now();
    let result = SopsFile::parse(name, text.as_bytes());
    let is_refused = matches!(
        result,
        Err(SopsError::TooLarge { .. } | SopsError::Malformed { .. } | SopsError::Truncated { .. })
    );
    assert!(is_refused, "{name}: {:?}", result.map(|_| ()));
    assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
}

#[test]
fn what_lies_too_deep_is_refused() {
    refused("x.yaml", &format!("a: {}{}\n{METADATA}", "[".repeat(5000), "]".repeat(5000)));
    refused("x.json", &format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000)));
    let block: String = (0..300).map(|depth| " ".repeat(depth) + "a:\n").collect();
    refused("x.yaml", &format!("{block}{METADATA}"));
}

#[test]
fn aliases_that_stand_for_too_much_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb += &format!("a{level}: &a{level} [{before}]\n");
    }
    refused("x.yaml", &format!("{bomb}{METADATA}"));
    let long = format!("a: &a {}\nb: [{}]\n{METADATA}", "x".repeat(1 << 20), "*a, ".repeat(10_000));
    refused("x.yaml", &long);
    assert!(Rules::parse(&bomb).is_err());
}

#[test]
fn what_has_too_many_parts_is_refused() {
    refused("x.yaml", &format!("a: [{}]\n{METADATA}", "1, ".repeat(300_000)));
    refused("x.yaml", &format!("{}{METADATA}", "#\n".repeat(300_000)));
    refused("x.json", &format!("{{\"a\": [{}1]}}", "1,".repeat(300_000)));
    let lines = |line: fn(usize) -> String| (0..300_000).map(line).collect::<Vec<_>>().concat();
    refused("x.env", &lines(|at| format!("k{at}=\n")));
    refused("x.ini", &lines(|at| format!("k{at}=\n")));
    refused("x.ini", &lines(|at| format!("[s{at}]\n")));
    let readers = "{recipient: x, enc: y}, ".repeat(2000);
    refused("x.yaml", &format!("sops: {{age: [{readers}], mac: z, lastmodified: w}}\n"));
}

#[test]
fn a_file_of_a_limit_each_way_is_read_in_good_time() {
    let start = Instant::now();
    let many: Vec<String> = (0..50_000).map(|at| format!("# said\nkey{at}: [a, b] # more\n")).collect();
    let rule = METADATA.replace("mac:", "encrypted_comment_regex: nothing, mac:");
    let file = SopsFile::parse("x.yaml", (many.concat() + &rule).as_bytes());
    // Nobody can open it, which is found out at once.
    assert!(file.is_err_and(|error| matches!(error, SopsError::TooLarge { .. })));
    let file = SopsFile::parse("x.yaml", (many[..20_000].concat() + &rule).as_bytes()).unwrap();
    assert!(matches!(file.open(&Keyring::default()), Err(SopsError::NoIdentity { .. })));
    assert_eq!(file.paths().len(), 40_000);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
