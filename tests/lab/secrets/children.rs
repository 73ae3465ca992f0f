//! Every program that is started in the whole life of a node, by the driver and in the node, with what it is given.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::NEEDS;
use super::poison::Poison;
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

#[test]
fn an_identity_in_a_variable_is_handed_to_no_program_that_is_started_and_no_value_to_any() {
    if lacks(&[NEEDS[0], NEEDS[1], Need::Program("strace")]) {
        return;
    }
    let poison = Poison::new();
    let (needles, trace) = (poison.needles(), poison.hoard.beside("trace"));
    let words = "test -M lab -H father";
    let own = poison.hoard.command(words);
    // A whole life in one command: everything that it starts, and everything in the machine, is below it.
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-v", "-xx", "-s", "1000000", "-e", "trace=execve", "-o"]).arg(&trace);
    strace.arg(own.get_program()).args(own.get_args());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    let owner = String::from_utf8(poison.hoard.owner.to_secret().expose().to_vec()).unwrap();
    strace.env_remove("SOPS_AGE_KEY_FILE").env("SOPS_AGE_KEY", &owner);
    Outcome::of(&mut strace, words).ends_with(0);
    let started = started(&trace);
    fs::remove_file(&trace).unwrap();
    let (driver, others) = started.split_first().unwrap();
    let found = needles.in_bytes(driver);
    assert!(found.iter().any(|what| what.starts_with("the identity")), "the driver has it: {found:?}");
    assert!(others.len() > 10, "{} programs were started", others.len());
    for program in others {
        let found = needles.in_bytes(program);
        assert!(found.is_empty(), "{found:?}: {}", String::from_utf8_lossy(program));
    }
    assert_nothing_is_left(&poison.hoard.lab);
}
