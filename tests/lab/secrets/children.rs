//! Every program that is started in the whole life of a node, by the driver and in the node, with what it is given.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::NEEDS;
use super::poison::Poison;
use super::scene::around;
use crate::common::{Need, Outcome, assert_nothing_is_left, lacks};

/// Every program that was started, with its arguments and variables, as `strace` wrote them.
fn started(trace: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(trace).unwrap();
    let lines = text.lines().filter(|line| line.contains("execve("));
    lines.map(|line| unescaped(line.as_bytes())).collect()
}

fn unescaped(line: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut bytes, mut rest) = (Vec::new(), line);
    while let [first, after @ ..] = rest {
        if let [b'\\', b'x', high, low, after @ ..] = rest {
            bytes.push(digit(*high).unwrap() << 4 | digit(*low).unwrap());
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    bytes
}

/// Runs a command with the identity in a variable, and says what was started by it and below it: the first is itself.
fn traced(poison: &Poison, words: &str) -> Vec<Vec<u8>> {
    let trace = poison.hoard.beside("trace");
    let own = poison.hoard.command(words);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-v", "-xx", "-s", "1000000", "-e", "trace=execve", "-o"]).arg(&trace);
    around(&mut strace, &own);
    let owner = String::from_utf8(poison.hoard.owner.to_secret().expose().to_vec()).unwrap();
    strace.env_remove("SOPS_AGE_KEY_FILE").env("SOPS_AGE_KEY", &owner).env("SOPS_AGE_KEY_CMD", "true");
    Outcome::of(&mut strace, words).ends_with(0);
    let started = started(&trace);
    fs::remove_file(&trace).unwrap();
    started
}

/// Asserts that a command has the identity itself, starts at least this many programs, and hands it to none.
#[track_caller]
fn assert_keeps_to_itself(poison: &Poison, words: &str, at_least: usize) {
    let (needles, started) = (poison.needles(), traced(poison, words));
    let (driver, others) = started.split_first().unwrap();
    let found = needles.in_bytes(driver);
    assert!(found.iter().any(|what| what.starts_with("the identity")), "the driver has it: {found:?}");
    assert!(others.len() >= at_least, "`{words}` started {} programs", others.len());
    for program in others {
        let found = needles.in_bytes(program);
        assert!(found.is_empty(), "{found:?}: {}", String::from_utf8_lossy(program));
    }
}

#[test]
fn an_identity_in_a_variable_is_handed_to_no_program_that_is_started_and_no_value_to_any() {
    if lacks(&[NEEDS[0], NEEDS[1], Need::Program("strace")]) {
        return;
    }
    let poison = Poison::new();
    // A whole life in one command: everything that it starts, and everything in the machine, is below it.
    assert_keeps_to_itself(&poison, "test -M lab -H father", 10);
    poison.hoard.orch("create -M lab -H father --mode pull").ends_with(0);
    for words in [
        "config -M lab -H father --mode pull",
        "exec -M lab -H father -- true",
        "ssh -M lab -H father a -- true",
    ] {
        assert_keeps_to_itself(&poison, words, 1);
    }
    poison.hoard.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(&poison.hoard.lab);
}
