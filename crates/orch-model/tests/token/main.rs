//! Tokens: byte for byte what an independent program makes, and believed only for what they are for.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::path::Path;
use std::process::Command;

use orch_model::Identity;
use orch_model::token::{
    Audience, Chain, Claims, Code, Demand, Keyring, Refusal, SigningKey, TokenId, read, sign, verify,
};
use proptest::prelude::*;
use serde_json::Value as Json;

const NOW: u64 = 1_700_000_010;

fn vectors() -> Json {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

/// The keys of these ids.
fn keys(ids: &[&str]) -> Keyring {
    let vectors = vectors();
    let key =
        |id: &&str| SigningKey::parse(id.parse().unwrap(), vectors["keys"][*id].as_str().unwrap()).unwrap();
    ids.iter().map(key).collect()
}

/// The token of this name that Python made.
fn token(name: &str) -> String {
    let vectors = vectors();
    let found = vectors["tokens"].as_array().unwrap().iter().find(|vector| vector["name"] == name);
    found.unwrap()["token"].as_str().unwrap().to_owned()
}

fn node() -> Identity {
    "nested-test.test-vm@father".parse().unwrap()
}

/// What is made of a token that is shown for the spec of a node.
fn shown(token: &str, ids: &[&str], change: impl FnOnce(&mut Demand<'_>)) -> Result<Claims, Refusal> {
    let node = node();
    let mut demand = Demand { node: &node, audience: Audience::Spec, now: NOW, accept_legacy: false };
    change(&mut demand);
    verify(token, &keys(ids), &demand)
}

#[test]
fn the_vectors_are_what_python_makes_of_them() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/token/vectors.py");
    let Ok(python) = Command::new("python3").arg(script).output() else {
        println!("the_vectors_are_what_python_makes_of_them: skipped: there is no `python3` here");
        return;
    };
    assert!(python.status.success(), "{python:?}");
    assert_eq!(serde_json::from_slice::<Json>(&python.stdout).unwrap(), vectors());
}

#[test]
fn tokens_are_byte_for_byte_those_of_the_vectors() {
    for (name, current) in [("spec", "k2"), ("report", "k2"), ("old key", "k1")] {
        let wanted = token(name);
        let claims = read(&wanted).unwrap();
        assert_eq!(sign(&claims, &keys(&[current])).unwrap(), wanted, "{name}");
    }
}

#[test]
fn a_token_is_believed_for_what_it_is_for_and_for_nothing_else() {
    let all = &["k1", "k2"][..];
    let other: Identity = "nested-test.other@father".parse().unwrap();
    assert_eq!(shown(&token("spec"), all, |_| {}).unwrap(), read(&token("spec")).unwrap());
    assert!(shown(&token("old key"), all, |_| {}).is_ok(), "a key that was replaced is still believed");
    assert!(shown(&token("report"), all, |demand| demand.audience = Audience::Report).is_ok());
    assert!(shown(&token("legacy"), all, |demand| demand.accept_legacy = true).is_ok());
    let late = |by: u64| move |demand: &mut Demand<'_>| demand.now = 1_700_003_600 + by;
    assert!(shown(&token("spec"), all, late(60)).is_ok(), "clocks differ a little");

    let refused = [
        (shown(&token("spec"), &[], |_| {}), Refusal::NoKey, Code::E500, 500),
        (shown("", all, |_| {}), Refusal::Malformed, Code::E300, 400),
        (shown("a.b.c", all, |_| {}), Refusal::Malformed, Code::E300, 400),
        (shown(&format!("{}=", token("spec")), all, |_| {}), Refusal::Malformed, Code::E300, 400),
        (shown(&token("spec"), &["k1"], |_| {}), Refusal::Forged, Code::E301, 401),
        (shown(&token("legacy"), &["k2"], |_| {}), Refusal::Forged, Code::E301, 401),
        (shown(&token("report"), all, |_| {}), Refusal::OtherAudience, Code::E301, 401),
        (shown(&token("legacy"), all, |_| {}), Refusal::OtherAudience, Code::E301, 401),
        (shown(&token("spec"), all, late(61)), Refusal::Expired, Code::E301, 401),
    ];
    for (number, (result, refusal, code, status)) in refused.into_iter().enumerate() {
        assert_eq!(result, Err(refusal), "case {number}");
        assert_eq!((refusal.code(), refusal.code().status()), (code, status), "case {number}");
    }
    let demand = Demand { node: &other, audience: Audience::Spec, now: NOW, accept_legacy: true };
    assert_eq!(verify(&token("spec"), &keys(all), &demand), Err(Refusal::OtherNode));
    let report = Demand { node: &node(), audience: Audience::Report, now: NOW, accept_legacy: true };
    assert_eq!(verify(&token("legacy"), &keys(all), &report), Err(Refusal::OtherAudience));
}

#[test]
fn a_token_that_does_not_say_which_one_it_is_or_who_signed_it_is_refused() {
    let all = &["k1", "k2"][..];
    for name in ["without id", "without key"] {
        assert_eq!(shown(&token(name), all, |_| {}), Err(Refusal::Forged), "{name}");
        let legacy = shown(&token(name), all, |demand| demand.accept_legacy = true);
        assert_eq!(legacy, Err(Refusal::Forged), "{name}: it is not of the old kind either");
    }
}

#[test]
fn what_is_checked_first_is_told_first() {
    let forged_for_another =
        |demand: &mut Demand<'_>| (demand.now, demand.audience) = (u64::MAX, Audience::Report);
    assert_eq!(shown(&token("spec"), &["k1"], forged_for_another), Err(Refusal::Forged));
    let another_and_late =
        |demand: &mut Demand<'_>| (demand.now, demand.audience) = (u64::MAX, Audience::Report);
    assert_eq!(shown(&token("spec"), &["k2"], another_and_late), Err(Refusal::OtherAudience));
    assert_eq!(shown("x", &[], |_| {}), Err(Refusal::NoKey));
}

#[test]
fn flipping_any_bit_of_a_token_makes_it_worthless() {
    for name in ["spec", "old key"] {
        let whole = token(name);
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                let refusal = match String::from_utf8(bytes) {
                    Ok(text) => shown(&text, &["k1", "k2"], |_| {}).unwrap_err(),
                    // What is not text never gets this far.
                    Err(_) => continue,
                };
                assert!(
                    matches!(refusal.code(), Code::E300 | Code::E301),
                    "{name}: {place}.{bit}: {refusal:?}"
                );
            }
        }
    }
}

#[test]
fn a_key_is_read_and_never_shown() {
    let text = "0".repeat(63) + "1";
    let key = SigningKey::parse("k".parse().unwrap(), &format!(" {text}\n")).unwrap();
    assert_eq!(*key.expose(), text);
    assert!(!format!("{key:?} {:?}", Keyring::from_iter([key.clone()])).contains("0001"));
    for wrong in ["", "0", &"g".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
        let told = SigningKey::parse("k".parse().unwrap(), wrong).unwrap_err();
        assert!(wrong.is_empty() || wrong == "0" || !told.contains(wrong), "{told}");
    }
}

proptest! {
    #[test]
    fn a_token_that_was_signed_is_believed_and_reads_back(iat in 0..u64::MAX / 2, generation: u64, chain: u128) {
        let claims = Claims {
            v: 1,
            n: node(),
            s: "base".parse().unwrap(),
            iat,
            aud: Some(Audience::Spec),
            exp: Some(iat),
            jti: Some(TokenId { chain: Chain(chain), generation }),
            kid: None,
        };
        let token = sign(&claims, &keys(&["k1", "k2"])).unwrap();
        let believed = shown(&token, &["k1", "k2"], |demand| demand.now = iat).unwrap();
        prop_assert_eq!(believed, Claims { kid: Some("k2".parse().unwrap()), ..claims });
    }

    #[test]
    fn no_text_makes_reading_panic(text in ".{0,200}") {
        let _ = shown(&text, &["k1"], |_| {});
    }
}
