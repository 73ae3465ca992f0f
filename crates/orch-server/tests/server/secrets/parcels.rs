//! Secrets on their way to a node: those that it lacks, for the one that it was known as first, and for nobody else.

use std::collections::BTreeMap;
use std::fs;

use orch_model::pull::{AGE_HEADER, HOLDS_HEADER, HOST_KEY_HEADER, SETTLED_HEADER, SpecAnswer};
use orch_secrets::Bundle;
use orch_secrets::seal::Identity;

use super::house::House;
use crate::client::Answer;
use crate::scene::{A, B, node, write};
use crate::tokens::legacy_token;

const SITE: &str = "one: value of one\ntwo: value of two\n";
const ASKED: [&str; 2] = ["name: one, path: /run/one", "name: two, path: /run/two"];

const HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn house() -> House {
    let mut house = House::new();
    house.keep("secrets/app.yaml", SITE);
    house.ask_for(&ASKED);
    house.serve();
    house
}

fn recipient(identity: &Identity) -> String {
    identity.recipient().to_string()
}

fn given(answer: &Answer) -> SpecAnswer {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).unwrap()
}

/// What is in an answer for an identity, by name.
fn opened(answer: &SpecAnswer, identity: &Identity) -> BTreeMap<String, String> {
    let Some(parcel) = &answer.parcel else { return BTreeMap::new() };
    let bundle = Bundle::unpack(identity, parcel).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    bundle.iter().map(|(name, _, value)| (name.to_string(), text(value.expose()))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_given_the_secrets_that_it_lacks_and_only_those() {
    let house = house();
    let (token, own, other) = (house.scene.token(A), Identity::generate(), Identity::generate());
    let age = recipient(&own);
    let silent = given(&house.ask(A, &token, &[]).await);
    assert!(silent.parcel.is_none(), "who does not say whom to encrypt for is given nothing");
    let digests = silent.spec.secret_digests();
    let [one, two] = ["one", "two"].map(|name| digests[name].to_string());
    let all = BTreeMap::from([("one", "value of one"), ("two", "value of two")]);
    let both = format!("{one},{two}");
    let short = one[..12].to_owned();
    let nonsense = format!("zz,,{},{one}", "0".repeat(32));
    for (holds, lacks) in [
        ("", &["one", "two"][..]),
        ("nonsense", &["one", "two"]),
        (&one, &["two"]),
        (&two, &["one"]),
        (&short, &["two"]),
        (&short[..11], &["one", "two"]),
        (&nonsense, &["two"]),
        (&both, &[]),
    ] {
        let hello = [(AGE_HEADER, age.as_str()), (HOLDS_HEADER, holds)];
        let answer = given(&house.ask(A, &token, &hello).await);
        let wanted: BTreeMap<String, String> =
            lacks.iter().map(|name| ((*name).to_owned(), all[name].to_owned())).collect();
        assert_eq!(opened(&answer, &own), wanted, "with `{holds}`");
        assert_eq!(answer.parcel.is_none(), lacks.is_empty());
        let parcel = answer.parcel.as_ref();
        assert!(parcel.is_none_or(|parcel| Bundle::unpack(&other, parcel).is_err()), "for nobody else");
    }
    // By what a value is known is of no use to who has another one.
    let of_b = given(&house.ask(B, &house.scene.token(B), &[(AGE_HEADER, &recipient(&other))]).await);
    assert!(of_b.spec.secret_digests().iter().all(|(name, digest)| digests[name] != *digest));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_secrets_gets_no_parcel() {
    let house = house();
    house.ask_for(&[]);
    let own = recipient(&Identity::generate());
    let answer = house.ask(A, &house.scene.token(A), &[(AGE_HEADER, &own)]).await;
    assert!(given(&answer).parcel.is_none());
    assert!(!String::from_utf8_lossy(&answer.body).contains("parcel"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_goes_out_for_a_token_of_the_old_kind() {
    let house = house();
    write(&house.scene.site("site.yaml"), "name: lab\nserver: { accept_legacy_tokens: true }\n");
    let Some(legacy) = legacy_token(&house.scene) else { return };
    let age = recipient(&Identity::generate());
    let answer = given(&house.ask(A, &legacy, &[(AGE_HEADER, &age)]).await);
    assert!(answer.parcel.is_none() && !answer.spec.secret_digests().is_empty());
    assert!(!house.ledger().contains(&age), "it pins nothing");
    // With the token that follows it the node stands in a chain.
    let next = given(&house.ask(A, answer.next.spec.expose(), &[(AGE_HEADER, &age)]).await);
    assert!(next.parcel.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_cannot_be_had_is_the_trouble_of_the_nodes_that_ask_for_it_alone() {
    let house = house();
    let manifest = fs::read_to_string(house.scene.site("manifests/m.yaml")).unwrap();
    let manifest = manifest.replace("name: b, type: vm, spec: base", "name: b, type: vm, spec: other");
    write(&house.scene.site("manifests/m.yaml"), &manifest);
    let missing = "schema_version: 1\nsecrets: [{ name: missing, path: /run/missing }]\n";
    write(&house.scene.site("specs/other.yaml"), missing);
    let (own, other) = (Identity::generate(), Identity::generate());
    let first = house.ask(A, &house.scene.token(A), &[(AGE_HEADER, &recipient(&own))]).await;
    assert_eq!(opened(&given(&first), &own).len(), 2);
    let (token, age) = (house.scene.token(B), recipient(&other));
    let second = house.ask(B, &token, &[(AGE_HEADER, &age)]).await;
    assert_eq!((second.status, second.code().as_str()), (500, "E500"));
    let last = house.said().lines().last().unwrap_or_default().to_owned();
    assert!(last.contains("`missing`"), "{last}");
    house.keep("secrets/more.yaml", "missing: there now\n");
    assert_eq!(opened(&given(&house.ask(B, &token, &[(AGE_HEADER, &age)]).await), &other).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_looks_for_identities_anew_and_one_that_fails_keeps_those_that_there_were() {
    let mut house = House::with_file_of_identities();
    house.keep("secrets/app.yaml", SITE);
    house.keep("secrets/server.yaml", &format!("k1: \"{}\"\n", "1".repeat(64)));
    house.ask_for(&ASKED);
    let keys = "name: lab\nserver: { signing_keys: { k1: \"secret:secrets/server.yaml#k1\" } }\n";
    write(&house.scene.site("site.yaml"), keys);
    house.serve();
    let (token, own) = (house.scene.token(A), Identity::generate());
    let age = recipient(&own);
    let hello = [(AGE_HEADER, age.as_str())];
    assert_eq!(opened(&given(&house.ask(A, &token, &hello).await), &own).len(), 2);
    house.forget_identity();
    assert!(house.scene.server.as_ref().unwrap().reload().is_err());
    house.keep("secrets/app.yaml", SITE);
    let answer = house.ask(A, &token, &hello).await;
    assert_eq!(opened(&given(&answer), &own).len(), 2, "what was found before is still known");
    house.change_identity();
    house.keep("secrets/app.yaml", SITE);
    house.keep("secrets/server.yaml", &format!("k1: \"{}\"\n", "1".repeat(64)));
    house.scene.server.as_ref().unwrap().reload().unwrap();
    assert_eq!(opened(&given(&house.ask(A, &token, &hello).await), &own).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_who_it_said_it_was_with_the_first_token_of_its_chain_and_anybody_else_is_an_alarm() {
    let mut house = house();
    let (own, thief) = (Identity::generate(), Identity::generate());
    let (own, thief) = (recipient(&own), recipient(&thief));
    let hello = [(AGE_HEADER, own.as_str()), (HOST_KEY_HEADER, HOST_KEY)];
    let first = house.scene.token(A);
    let next = given(&house.ask(A, &first, &hello).await).next.spec.expose().to_owned();
    assert!(house.ledger().contains(&own), "on disk before it was answered: {}", house.ledger());
    let record = house.scene.operator().record(&node(A), None).await.unwrap();
    let keys = record.keys.unwrap();
    assert_eq!((keys.age.as_str(), keys.host_key.unwrap().as_str()), (own.as_str(), HOST_KEY));
    assert!(record.alarm.is_none() && !keys.settled, "it never said that it shows that key");

    let is_alarmed = async |house: &House| {
        let record = house.scene.operator().record(&node(A), None).await.unwrap();
        record.alarm.is_some()
    };
    let before = house.ledger();
    let answer = house.ask(A, &next, &[(AGE_HEADER, &thief)]).await;
    let after = house.ledger();
    assert_eq!((answer.status, answer.code().as_str()), (403, "E302"));
    assert!(!String::from_utf8_lossy(&answer.body).contains("parcel"));
    assert!(
        after.len() > before.len() && after.starts_with(&before),
        "on disk before it was answered: {after}"
    );
    assert!(!after.contains(&thief) && is_alarmed(&house).await);
    assert_eq!(house.ask(A, &next, &hello).await.status, 200, "the node itself is still served");

    house.serve();
    assert!(is_alarmed(&house).await, "also after the server was started anew");
    let answer = house.ask(A, &next, &[(AGE_HEADER, &thief)]).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "E302"));
    assert_eq!(house.ask(A, &next, &hello).await.status, 200);
    let keys = house.scene.operator().record(&node(A), None).await.unwrap().keys.unwrap();
    assert_eq!(keys.age.as_str(), own);

    // Whoever enrols it anew has looked at it; the machine may be another.
    let answer = house.ask(A, &house.scene.token(A), &[(AGE_HEADER, &thief)]).await;
    assert!(answer.status == 200 && !is_alarmed(&house).await);
    assert_eq!(house.ask(A, &next, &hello).await.code(), "E302", "and the chain before it is at its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_a_node_shows_its_own_host_key_is_what_it_says_with_its_report() {
    let house = house();
    let (own, thief) = (recipient(&Identity::generate()), recipient(&Identity::generate()));
    let record = async || house.scene.operator().record(&node(A), None).await.unwrap();
    let settled = async || record().await.keys.unwrap().settled;
    let hello = [(AGE_HEADER, own.as_str()), (HOST_KEY_HEADER, HOST_KEY), (SETTLED_HEADER, "false")];
    let report = given(&house.ask(A, &house.scene.token(A), &hello).await).next.report;
    assert!(!settled().await);
    let tell = async |age: &str, host_key: &str, settled: &str| {
        let hello = [(AGE_HEADER, age), (HOST_KEY_HEADER, host_key), (SETTLED_HEADER, settled)];
        house.tell(A, report.expose(), &hello, r#"{"kind":"progress","doing":"x"}"#).await
    };
    assert_eq!(tell(&own, HOST_KEY, "false").await.status, 204);
    assert!(!settled().await);
    let other = tell(&thief, HOST_KEY, "true").await;
    assert_eq!((other.status, other.code().as_str()), (403, "E302"));
    assert!(!settled().await && record().await.alarm.is_some());
    let other = tell(&own, &HOST_KEY.replace("R4f", "R4g"), "true").await;
    assert_eq!((other.status, other.code().as_str()), (403, "E302"));
    assert_eq!(tell(&own, HOST_KEY, "true").await.status, 204);
    assert!(settled().await && house.ledger().contains("\"settled\":true"), "{}", house.ledger());
    assert_eq!(tell(&own, HOST_KEY, "false").await.status, 204);
    assert!(settled().await, "what was said late is no news");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_hundreds_of_secrets_can_say_so() {
    let house = house();
    let (token, own) = (house.scene.token(A), Identity::generate());
    let digests = given(&house.ask(A, &token, &[]).await).spec.secret_digests().clone();
    let others = (0..998_u64).map(|number| format!("{number:012x}"));
    let own_ones = digests.values().map(|digest| digest.as_str()[..12].to_owned());
    let holds: Vec<String> = others.chain(own_ones).collect();
    let age = recipient(&own);
    let hello = [(AGE_HEADER, age.as_str()), (HOST_KEY_HEADER, HOST_KEY), (HOLDS_HEADER, &holds.join(","))];
    assert!(given(&house.ask(A, &token, &hello).await).parcel.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_is_not_taken_for_another_whatever_it_says_of_itself() {
    let house = house();
    let (a, b) = (Identity::generate(), Identity::generate());
    let of_a = given(&house.ask(A, &house.scene.token(A), &[(AGE_HEADER, &recipient(&a))]).await);
    given(&house.ask(B, &house.scene.token(B), &[(AGE_HEADER, &recipient(&b))]).await);
    let before = house.ledger();
    for age in [&a, &b] {
        let answer = house.ask(B, of_a.next.spec.expose(), &[(AGE_HEADER, &recipient(age))]).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "E301"));
    }
    assert_eq!(house.ledger(), before, "nobody is accused by who has no token of his");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_what_is_answered_nor_what_is_logged_holds_a_value() {
    let house = house();
    let (token, own) = (house.scene.token(A), recipient(&Identity::generate()));
    let hello = [(AGE_HEADER, own.as_str())];
    let mut heard = vec![house.ask(A, &token, &hello).await];
    let whole = fs::read(house.scene.site("secrets/app.yaml")).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let one = text.lines().find(|line| line.starts_with("one: ")).unwrap();
    let two = text.lines().find(|line| line.starts_with("two: ")).unwrap();
    let moved = text.replace(one, &two.replace("two: ", "one: "));
    let stranger = Identity::generate();
    let breaks: [(&str, &dyn Fn()); 5] = [
        ("cut short", &|| {
            fs::write(house.scene.site("secrets/app.yaml"), &whole[..whole.len() / 2]).unwrap();
        }),
        ("tampered with", &|| fs::write(house.scene.site("secrets/app.yaml"), &moved).unwrap()),
        ("in clear", &|| fs::write(house.scene.site("secrets/app.yaml"), SITE).unwrap()),
        ("for somebody else", &|| house.keep_for("secrets/app.yaml", SITE, &stranger)),
        ("gone", &|| fs::remove_file(house.scene.site("secrets/app.yaml")).unwrap()),
    ];
    for (how, spoil) in breaks {
        spoil();
        let answer = house.ask(A, &token, &hello).await;
        assert_eq!((answer.status, answer.code().as_str()), (500, "E500"), "{how}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("app.yaml"), "what is wrong is for the log");
        let last = house.said().lines().last().unwrap_or_default().to_owned();
        assert!(last.contains("the secrets of this node cannot be opened: "), "{how}: {last}");
        heard.push(answer);
    }
    house.keep("secrets/app.yaml", SITE);
    heard.push(house.ask(A, &token, &hello).await);
    assert_eq!(heard.last().unwrap().status, 200, "mended, it is served again");
    let metrics = house.scene.operator().metrics().await.unwrap();
    let kept = walk(&house.scene.base.path().join("state"));
    let answers: String =
        heard.iter().map(|answer| String::from_utf8_lossy(&answer.body).into_owned()).collect();
    for (place, text) in
        [("log", &house.said()), ("answers", &answers), ("metrics", &metrics), ("state", &kept)]
    {
        assert!(!text.is_empty());
        for value in ["value of one", "value of two"] {
            assert!(!text.contains(value), "`{value}` is in the {place}");
        }
    }
}

/// Everything that is in the files below a folder.
fn walk(folder: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&walk(&path));
        } else if path.is_file() {
            text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
    text
}
