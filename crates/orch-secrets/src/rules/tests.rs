//! The rules as sops reads them, and the changes to their text.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use super::*;
use crate::sops::Rule;

const A: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
const B: &str = "age1lggyhqrw2nlhcxprm67z43rta597azn8gknawjehu9d9dl0jq3yqqvfafg";
const C: &str = "age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z";

fn reader(text: &str) -> Reader {
    text.parse().unwrap()
}

fn names(rules: &Rules, path: &str) -> Vec<Vec<String>> {
    let policy = rules.policy(path).unwrap();
    policy.groups.iter().map(|group| group.iter().map(ToString::to_string).collect()).collect()
}

#[test]
fn the_first_rule_that_matches_holds() {
    let text = format!(
        "creation_rules:\n  - path_regex: secrets/prod/\n    age: {A},{B}\n    encrypted_regex: ^data$\n  - path_regex: \\.yaml$\n    age: [{B}]\n    mac_only_encrypted: true\n"
    );
    let rules = Rules::parse(&text).unwrap();
    assert_eq!(names(&rules, "secrets/prod/x.yaml"), [[A, B]]);
    assert_eq!(names(&rules, "other.yaml"), [[B]]);
    assert_eq!(
        rules.policy("secrets/prod/x").unwrap().selection.rule,
        Some(Rule::EncryptedRegex("^data$".into()))
    );
    assert!(rules.policy("x.yaml").unwrap().selection.mac_only_encrypted);
    assert_eq!(rules.policy("x.json"), Err(RulesError::NoRule { path: "x.json".into() }));
}

#[test]
fn groups_anchors_and_other_kinds_are_understood() {
    let text = format!(
        "keys:\n  - &a {A}\n  - &b {B}\ncreation_rules:\n  - key_groups:\n      - age: [*a]\n      - age:\n          - *b\n        pgp: [ABCD]\n    shamir_threshold: 2\n"
    );
    let rules = Rules::parse(&text).unwrap();
    assert_eq!(names(&rules, "x"), [vec![A], vec![B, "ABCD"]]);
    assert_eq!(rules.policy("x").unwrap().threshold, 2);
}

#[test]
fn a_rule_that_sops_would_refuse_is_refused() {
    for text in [
        "creation_rules: x\n",
        "creation_rules: [1]\n",
        "creation_rules:\n- encrypted_regex: a\n  encrypted_suffix: b\n",
        "creation_rules:\n- age: {a: b}\n",
        "creation_rules: [",
    ] {
        assert!(Rules::parse(text).is_err(), "{text}");
    }
    let rules = Rules::parse("creation_rules:\n- path_regex: (\n").unwrap();
    assert!(matches!(rules.policy("x"), Err(RulesError::BadRule { number: 1, .. })));
}

/// Adds C, and then takes B away.
fn check(text: &str, added: &str, removed: &str) {
    let text = text.replace('A', A).replace('B', B);
    let expand = |text: &str| text.replace('A', A).replace('B', B).replace('C', C);
    let with = add_recipient(&text, "x.yaml", &reader(C)).unwrap();
    assert_eq!(with, expand(added));
    assert_eq!(add_recipient(&with, "x.yaml", &reader(C)).unwrap(), with, "a second time changes nothing");
    let without = remove_recipient(&with, &reader(B)).unwrap();
    assert_eq!(without, expand(removed));
    assert_eq!(remove_recipient(&without, &reader(B)).unwrap(), without, "a second time changes nothing");
}

#[test]
fn changes_touch_nothing_but_what_they_are_about() {
    check(
        "# top\ncreation_rules:\n  - age: A,B # who\n    path_regex: x\n",
        "# top\ncreation_rules:\n  - age: A,B,C # who\n    path_regex: x\n",
        "# top\ncreation_rules:\n  - age: A,C # who\n    path_regex: x\n",
    );
    check(
        "creation_rules:\n- age:\n  - A # one\n  # mark\n  - B # two\n  path_regex: x\n",
        "creation_rules:\n- age:\n  - A # one\n  # mark\n  - B # two\n  - C\n  path_regex: x\n",
        "creation_rules:\n- age:\n  - A # one\n  # mark\n  - C\n  path_regex: x\n",
    );
    check(
        "creation_rules: [{age: [A, B]}]\n",
        "creation_rules: [{age: [A, B, C]}]\n",
        "creation_rules: [{age: [A, C]}]\n",
    );
    check(
        "creation_rules:\n  - age: >-\n      A,\n      B\n",
        "creation_rules:\n  - age: >-\n      A,\n      B,\n      C\n",
        "creation_rules:\n  - age: >-\n      A,\n      C\n",
    );
    check(
        "creation_rules:\n  - age: \"A,B\"\n  - age: B,A\n",
        "creation_rules:\n  - age: \"A,B,C\"\n  - age: B,A\n",
        "creation_rules:\n  - age: \"A,C\"\n  - age: A\n",
    );
    check(
        "keys: [&a A, &b B]\ncreation_rules:\n  - key_groups:\n    - age:\n      - *a\n      - *b\n",
        "keys: [&a A, &b B]\ncreation_rules:\n  - key_groups:\n    - age:\n      - *a\n      - *b\n      - C\n",
        "keys: [&a A, &b B]\ncreation_rules:\n  - key_groups:\n    - age:\n      - *a\n      - C\n",
    );
    check(
        "creation_rules:\n  - age:\n    - A\n    - B",
        "creation_rules:\n  - age:\n    - A\n    - B\n    - C",
        "creation_rules:\n  - age:\n    - A\n    - C",
    );
}

#[test]
fn a_rule_without_age_gets_one() {
    let text = "creation_rules:\n  - path_regex: x # here\n    pgp: ABCD\n";
    let with = add_recipient(text, "x", &reader(C)).unwrap();
    assert_eq!(with, format!("creation_rules:\n  - age: {C}\n    path_regex: x # here\n    pgp: ABCD\n"));
    let with = add_recipient("creation_rules:\n  - age:\n    path_regex: x\n", "x", &reader(C)).unwrap();
    assert_eq!(with, format!("creation_rules:\n  - age: {C}\n    path_regex: x\n"));
}

#[test]
fn what_cannot_be_changed_safely_is_refused() {
    let last = format!("creation_rules:\n- age: {A}\n");
    let refused = remove_recipient(&last, &reader(A)).unwrap_err();
    assert!(matches!(refused, RulesError::LastRecipient { number: 1, .. }));
    // The anchor goes, and what repeats it would mean nothing.
    let anchored =
        format!("creation_rules:\n- age:\n  - &a {A}\n  - {B}\n- age: [*a, {B}, {C}]\n  path_regex: y\n");
    let without = remove_recipient(&anchored, &reader(A)).unwrap();
    assert!(!without.contains(A) && without.contains(C));
    let anchored = format!("creation_rules:\n- age: &x [{A}, {B}]\n- age: *x\n");
    assert!(remove_recipient(&anchored, &reader(B)).is_err());
    let groups = format!("creation_rules:\n- key_groups: [{{age: [{A}]}}, {{age: [{B}]}}]\n");
    assert!(matches!(add_recipient(&groups, "x", &reader(C)), Err(RulesError::CannotEdit { .. })));
    assert!(matches!(
        add_recipient(&last.replace("- age", "- path_regex: q\n  age"), "x", &reader(C)),
        Err(RulesError::NoRule { .. })
    ));
}
