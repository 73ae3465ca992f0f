//! Whose token opens what, and for how long.

use std::time::Duration;

use orch_model::token::{Audience, Claims, sign};
use orch_server::{Keys, Revoked};

use crate::scene::{A, B, NOW, Scene, limits, node};

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_has_its_code_and_its_status() {
    let scene = Scene::new();
    let first = scene.token(A);
    let answer = scene.fetch(A, &first).await;
    let report = answer.next.report.expose().to_owned();
    let none = scene.client.ask("GET", &format!("/v1/spec/{A}"), None, b"").await;
    assert_eq!((none.status, none.code().as_str()), (400, "E300"));
    let strange = {
        let claims: Claims = orch_model::token::read(&first).unwrap();
        let keys = Keys::of(&orch_server::ServerFolder::of(
            &orch_run::StateDir::locate(Some(&scene.base.path().join("other"))).unwrap(),
            &"lab".parse().unwrap(),
        ));
        sign(&claims, &keys.ring().unwrap()).unwrap()
    };
    let cases = [
        (A, "rubbish", 400, "E300"),
        (A, &*strange, 401, "E301"),
        (B, &*first, 401, "E301"),
        (A, &*report, 401, "E301"),
        ("m.bare@h", &*scene.token("m.bare@h"), 404, "E200"),
        ("m.nobody@h", &*scene.token("m.nobody@h"), 404, "E200"),
        ("other.a@h", &*scene.token("other.a@h"), 404, "E200"),
    ];
    for (node, token, status, code) in cases {
        let answer = scene.spec(node, token).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{node}");
    }
    scene.advance(Duration::from_mins(61));
    assert_eq!(scene.spec(A, &first).await.status, 200, "a minute late is not too late");
    scene.advance(Duration::from_secs(1));
    assert_eq!(scene.spec(A, &first).await.code(), "E301");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_worthless_once_its_successor_was_shown_and_that_is_an_alarm() {
    let scene = Scene::new();
    let first = scene.token(A);
    let (one, two) = (scene.fetch(A, &first).await, scene.fetch(A, &first).await);
    assert_eq!(one.spec, two.spec, "an answer that was lost is given again");
    let third = scene.fetch(A, one.next.spec.expose()).await;
    let again = scene.spec(A, &first).await;
    assert_eq!((again.status, again.code().as_str()), (403, "E302"));
    let record = scene.operator().record(&node(A), None).await.unwrap();
    assert_eq!(record.alarm.unwrap().id, orch_model::token::read(&first).unwrap().jti.unwrap());
    assert_eq!(scene.operator().record(&node(B), None).await.unwrap().alarm, None);
    scene.fetch(A, third.next.spec.expose()).await;
    let anew = scene.token(A);
    scene.fetch(A, &anew).await;
    assert_eq!(scene.spec(A, third.next.spec.expose()).await.code(), "E302", "it was enrolled anew");
    assert_eq!(scene.operator().record(&node(A), None).await.unwrap().alarm, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_of_an_answer_hold_for_four_intervals_or_a_day() {
    let scene = Scene::new();
    let expiry = |token: &str| orch_model::token::read(token).unwrap().exp.unwrap();
    let answer = scene.fetch(A, &scene.token(A)).await;
    assert_eq!(expiry(answer.next.spec.expose()), NOW + 24 * 3600);
    let spec = "schema_version: 1\nrun: { interval: 7d }\n";
    crate::scene::write(&scene.site("specs/base.yaml"), spec);
    let answer = scene.fetch(A, answer.next.spec.expose()).await;
    assert_eq!(expiry(answer.next.report.expose()), NOW + 4 * 7 * 24 * 3600);
    let claims = orch_model::token::read(answer.next.report.expose()).unwrap();
    assert_eq!((claims.aud, claims.s.as_str()), (Some(Audience::Report), "base"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_is_refused_and_stays_so() {
    let mut scene = Scene::new();
    let (chain, nodes) = (scene.token(A), scene.token(B));
    let id = orch_model::token::read(&chain).unwrap().jti.unwrap();
    let until = orch_model::token::read(&nodes).unwrap().jti.unwrap().chain;
    scene.operator().revoke(&Revoked::Chain(id.chain)).await.unwrap();
    scene.operator().revoke(&Revoked::Node(node(B), until)).await.unwrap();
    for _ in 0..2 {
        for (name, token) in [(A, &chain), (B, &nodes)] {
            let answer = scene.spec(name, token).await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "E302"));
        }
        assert_eq!(scene.spec(A, &scene.token(A)).await.status, 200, "others are not");
        scene.server.take().unwrap().end().await;
        scene.start(&limits());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_signs_from_then_on_and_the_old_one_is_believed_until_it_is_retired() {
    let scene = Scene::new();
    let keys = Keys::of(&scene.folder);
    let old = keys.ring().unwrap().current().unwrap().id().clone();
    let token = scene.token(A);
    let new = keys.rotate().unwrap();
    scene.operator().reload().await.unwrap();
    let answer = scene.fetch(A, &token).await;
    let signed_by = |token: &str| orch_model::token::read(token).unwrap().kid.unwrap();
    assert_eq!((signed_by(&token), signed_by(answer.next.spec.expose())), (old.clone(), new));
    assert!(keys.retire(&old).unwrap());
    scene.operator().reload().await.unwrap();
    assert_eq!(scene.spec(A, &token).await.code(), "E301");
    scene.fetch(A, answer.next.spec.expose()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_old_kind_is_taken_only_where_the_site_says_so() {
    let scene = Scene::new();
    let Some(legacy) = legacy_token(&scene) else { return };
    assert_eq!(scene.spec(A, &legacy).await.code(), "E301");
    crate::scene::write(&scene.site("site.yaml"), "name: lab\nserver: { accept_legacy_tokens: true }\n");
    let answer = scene.fetch(A, &legacy).await;
    scene.fetch(A, answer.next.spec.expose()).await;
    let report = scene.client.ask("POST", &format!("/v1/report/{A}"), Some(&legacy), b"{}").await;
    assert_eq!(report.code(), "E301", "it opens specs alone");
}

/// A token of the old kind for a node; nothing where none can be made.
pub(crate) fn legacy_token(scene: &Scene) -> Option<String> {
    let claims = Claims {
        aud: None,
        exp: None,
        jti: None,
        kid: None,
        ..orch_model::token::read(&scene.token(A)).unwrap()
    };
    // Signed by hand: what orch signs names its key.
    let ring = Keys::of(&scene.folder).ring().unwrap();
    legacy(&claims, &ring.current().unwrap().expose())
}

/// A token without the later claims, made by Python; nothing where there is none.
fn legacy(claims: &Claims, key: &str) -> Option<String> {
    let script = "import base64,hashlib,hmac,sys\nkey,payload=sys.stdin.read().split('\\n')[:2]\n\
        e=lambda b:base64.urlsafe_b64encode(b).rstrip(b'=')\np=e(payload.encode())\n\
        print((p+b'.'+e(hmac.new(bytes.fromhex(key),p,hashlib.sha256).digest())).decode())";
    let mut python = std::process::Command::new("python3");
    python.args(["-c", script]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let Ok(mut child) = python.spawn() else {
        eprintln!("a_token_of_the_old_kind: skipped: there is no `python3` here");
        return None;
    };
    let input = format!("{key}\n{}\n", serde_json::to_string(claims).unwrap());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    Some(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned())
}
