//! What the server keeps is kept: keys, certificates, and what it knows of the site.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use orch_model::token::{Refusal, read};
use orch_secrets::Identities;
use orch_server::{Certificates, Keys, Revoked, SitePlace, Specs, judge_token};

use crate::scene::{A, B, Scene, node, write};

#[test]
fn a_new_key_signs_even_where_the_clock_was_set_back() {
    let scene = Scene::without_server();
    let keys = Keys::of(&scene.folder);
    let first = keys.ring().unwrap().current().unwrap().id().clone();
    let folder = scene.folder.ledger_path().with_file_name("keys");
    // Made when this machine believed that it was the year 2255.
    let late = folder.join("k9000000000000000");
    fs::rename(folder.join(first.as_str()), &late).unwrap();
    for _ in 0..3 {
        let new = keys.rotate().unwrap();
        assert_eq!(*keys.ring().unwrap().current().unwrap().id(), new);
    }
}

#[test]
fn what_is_no_key_is_not_taken_for_one() {
    let scene = Scene::without_server();
    let keys = Keys::of(&scene.folder);
    let first = keys.ring().unwrap().current().unwrap().id().clone();
    let folder = scene.folder.ledger_path().with_file_name("keys");
    // What is left of a server that lost its power while it wrote, today and by the names of before.
    for name in ["k9000000000000000.7-0.new", "k9000000000000000.new", ".hidden", "a name"] {
        fs::write(folder.join(name), "half a k").unwrap();
    }
    let found: Vec<_> = keys.ring().unwrap().all().map(|key| key.id().clone()).collect();
    assert_eq!(found, [first]);
}

#[test]
fn a_certificate_that_was_promised_is_shown_also_where_many_rotate_at_once() {
    let scene = Scene::without_server();
    let promised = Certificates::of(&scene.folder).unwrap().pins()[1];
    let rotated: Vec<_> = std::thread::scope(|scope| {
        let rotate = || Certificates::rotate(&scene.folder).unwrap().pins();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(rotate)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let last = Certificates::of(&scene.folder).unwrap().pins()[1];
    let shown: BTreeSet<_> = rotated.iter().map(|[current, _]| *current).chain([last]).collect();
    let promised: BTreeSet<_> = rotated.iter().map(|[_, next]| *next).chain([promised]).collect();
    assert_eq!(shown, promised, "each one that is shown was the next one before");
    assert_eq!(shown.len(), 9);
}

#[test]
fn a_site_behind_a_link_is_the_one_that_the_link_leads_to_now() {
    let scene = Scene::without_server();
    let (link, next) = (scene.base.path().join("current"), scene.base.path().join("next"));
    let other = scene.base.path().join("other");
    write(&other.join("site.yaml"), "name: lab\nserver: { accept_legacy_tokens: true }\n");
    symlink("site", &link).unwrap();
    let specs =
        Specs::of(SitePlace { root: link.clone(), manifest: None, identities: Identities::default() })
            .unwrap();
    assert!(!specs.catch_up() && !specs.accepts_legacy_tokens());
    symlink("other", &next).unwrap();
    fs::rename(&next, &link).unwrap();
    let flipped = Instant::now();
    while !specs.catch_up() {
        assert!(flipped.elapsed() < Duration::from_secs(20), "nobody has seen it");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(specs.accepts_legacy_tokens());
    write(&other.join("site.yaml"), "name: lab\n");
    assert!(specs.catch_up() && !specs.accepts_legacy_tokens(), "and the kernel tells of that one now");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_a_token_is_what_its_node_would_be_told_and_changes_nothing() {
    let path = Scene::without_server().folder.ledger_path();
    let id = |token: &str| read(token).unwrap().jti.unwrap();
    let scene = Scene::new();
    let (first, of_b) = (scene.token(A), scene.token(B));
    assert_eq!(judge_token(&path, &node(A), id(&first)).unwrap(), Ok(()), "there is no ledger yet");
    assert!(!path.exists(), "and none is made");
    let path = scene.folder.ledger_path();
    let second = scene.fetch(A, &first).await.next.spec.expose().to_owned();
    assert_eq!(judge_token(&path, &node(A), id(&first)).unwrap(), Ok(()), "it may be repeated");
    scene.fetch(A, &second).await;
    scene.operator().revoke(&Revoked::Chain(id(&of_b).chain)).await.unwrap();
    let before = fs::read(&path).unwrap();
    for (name, token, said) in [
        (A, &first, Err(Refusal::UsedUp)),
        (A, &second, Ok(())),
        (A, &scene.token(A), Ok(())),
        (B, &of_b, Err(Refusal::Revoked)),
        (B, &scene.token(B), Ok(())),
    ] {
        assert_eq!(judge_token(&path, &node(name), id(token)).unwrap(), said, "{name}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(scene.operator().record(&node(A), None).await.unwrap().alarm, None, "nobody misused it");
    assert_eq!(scene.spec(A, &first).await.code(), "E302", "as it was said");
}
