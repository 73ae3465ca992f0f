//! What is answered, what is kept, and what a change of the site or the end of the server means for it.

use std::time::{Duration, Instant};

use orch_model::pull::{NodeResult, SpecAnswer, Telling};
use orch_model::{ApplyReport, ApplyStatus, Mode};
use orch_server::Certificates;

use crate::client::{Client, ask_on};
use crate::scene::{A, B, NOW, Scene, limits, node, write};

/// What a node says that applied what it was given.
fn result(answer: &SpecAnswer) -> Telling {
    let report = ApplyReport {
        phase: "config".into(),
        status: ApplyStatus::Complete,
        node: answer.spec.node.clone(),
        spec: answer.spec.spec.clone(),
        spec_digest: answer.spec.digest(),
        mode: Mode::Pull,
        started_at: "2026-01-01T00:00:00Z".into(),
        finished_at: "2026-01-01T00:00:01Z".into(),
        attempts: 1,
        resources: Vec::new(),
        health: Vec::new(),
        error: None,
    };
    Telling::Result(Box::new(NodeResult {
        report,
        drift: Vec::new(),
        owed: false,
        clock: i64::try_from(NOW).unwrap() - 90,
    }))
}

async fn tell(scene: &Scene, node: &str, token: &str, telling: &Telling) -> u16 {
    let body = serde_json::to_vec(telling).unwrap();
    scene.client.ask("POST", &format!("/v1/report/{node}"), Some(token), &body).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_gets_its_own_configuration_and_a_spec_that_was_edited_is_there_at_the_next_question() {
    let scene = Scene::new();
    let first = scene.fetch(A, &scene.token(A)).await;
    assert_eq!(first.spec.node, node(A));
    assert_eq!(first.spec.role.files[0].content, "hello");
    let mut answer = first;
    for round in 0..50 {
        let text = format!("round{round}");
        scene.say(&text);
        answer = scene.fetch(A, answer.next.spec.expose()).await;
        assert_eq!(answer.spec.role.files[0].content, text, "the very next question");
    }
    write(&scene.site("specs/base.yaml"), "schema_version: 1\nfiles: [{ path: nowhere }]\n");
    let kept = scene.fetch(A, answer.next.spec.expose()).await;
    assert_eq!(kept.spec, answer.spec, "what makes no sense is not taken over");
    let record = scene.operator().record(&node(A), None).await.unwrap();
    assert!(record.trouble.unwrap().contains("specs/base.yaml"));
    assert!(scene.operator().reload().await.is_err());
    scene.say("mended");
    let mended = scene.fetch(A, kept.next.spec.expose()).await;
    assert_eq!(mended.spec.role.files[0].content, "mended");
    assert_eq!(scene.operator().record(&node(A), None).await.unwrap().trouble, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_byte_for_byte_what_the_model_writes() {
    let scene = Scene::new();
    // A short one is sent as a whole, a long one in pieces.
    for text in ["hello".to_owned(), "long".repeat(100_000)] {
        scene.say(&text);
        let answer = scene.spec(A, &scene.token(A)).await;
        let read: SpecAnswer = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(read.spec.role.files[0].content, text);
        assert!(serde_json::to_vec(&read).unwrap() == answer.body, "names, order, and nothing beside them");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_never_made_sense_is_an_error_of_its_own() {
    let scene = Scene::new();
    write(&scene.site("manifests/broken.yaml"), "schema_version: 2\nname: broken\nnodes: [{ name: a }]\n");
    let mut scene = scene;
    scene.server.take().unwrap().end().await;
    scene.start(&limits());
    let answer = scene.spec("broken.a@h", &scene.token("broken.a@h")).await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "E400"));
    assert_eq!(scene.spec(A, &scene.token(A)).await.status, 200, "a broken neighbour stops nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_kept_shown_to_the_operator_and_survives_the_server() {
    let mut scene = Scene::new();
    let answer = scene.fetch(A, &scene.token(A)).await;
    let before = scene.operator().record(&node(A), None).await.unwrap();
    assert_eq!(before.fetched.unwrap().digest, Some(answer.spec.digest()));
    let report = answer.next.report.expose();
    let progress = Telling::Progress { doing: "changing\u{1b}[31m things".into() };
    assert_eq!(tell(&scene, A, report, &progress).await, 204);
    let doing = scene.operator().record(&node(A), Some(before.events)).await.unwrap();
    assert!(
        doing.doing.as_deref().unwrap().starts_with("changing") && !doing.doing.unwrap().contains('\u{1b}')
    );
    assert_eq!(tell(&scene, B, report, &result(&answer)).await, 401);
    assert_eq!(tell(&scene, A, report, &result(&answer)).await, 204);
    assert_eq!(tell(&scene, A, report, &result(&answer)).await, 204, "said twice is said once");
    // Dropped and not ended: as good as killed.
    drop(scene.server.take());
    scene.start(&limits());
    let after = scene.operator().record(&node(A), None).await.unwrap();
    let reported = after.reported.unwrap();
    assert_eq!(
        (reported.result.report.spec_digest, reported.skew, reported.at),
        (answer.spec.digest(), -90, NOW)
    );
    assert_eq!(after.wanted, Some(answer.spec.digest()));
    assert_eq!(scene.operator().record(&node(B), None).await.unwrap().reported, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_is_told_of_an_edit_and_of_a_word_and_of_nothing_else() {
    let scene = Scene::new();
    let (a, b) = (scene.fetch(A, &scene.token(A)).await, scene.fetch(B, &scene.token(B)).await);
    let wait = |node: &'static str, answer: &SpecAnswer| {
        let (client, token) = (scene.client.clone(), answer.next.spec.expose().to_owned());
        let path = format!("/v1/wait/{node}?after={}", answer.revision);
        tokio::spawn(async move {
            let begun = Instant::now();
            let answer = client.get(&path, &token).await;
            (answer.json()["revision"].as_u64().unwrap(), begun.elapsed())
        })
    };
    let (waits_a, waits_b) = (wait(A, &a), wait(B, &b));
    tokio::time::sleep(Duration::from_millis(300)).await;
    scene.operator().converge(&node(A)).await.unwrap();
    let (revision, took) = waits_a.await.unwrap();
    assert!(revision != a.revision && took < Duration::from_secs(3), "{took:?}");
    let (same, took) = waits_b.await.unwrap();
    assert!(same == b.revision && took >= Duration::from_secs(4), "nothing is new for the other: {took:?}");
    let waits_b = wait(B, &b);
    tokio::time::sleep(Duration::from_millis(300)).await;
    scene.say("edited");
    let (revision, took) = waits_b.await.unwrap();
    assert!(revision != b.revision && took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_followed_by_one_that_every_node_knows_already() {
    let mut scene = Scene::new();
    let first = scene.fetch(A, &scene.token(A)).await;
    let address = scene.client.address;
    Certificates::rotate(&scene.folder).unwrap();
    scene.server.as_ref().unwrap().reload().unwrap();
    let informed = Client::new(address, &first.pins, &[b"http/1.1"]);
    let answer = informed.get(&format!("/v1/spec/{A}"), first.next.spec.expose()).await;
    let answer: SpecAnswer = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.pins[0], answer.pins.len()), (first.pins[1], 2));
    assert!(!first.pins.contains(&answer.pins[1]));
    let behind = Client::new(address, &first.pins[..1], &[b"http/1.1"]);
    assert!(behind.connect().await.is_err(), "who was told one alone is not led to another");
    scene.server.take().unwrap().end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_lets_what_is_under_way_finish_and_nobody_waits_for_those_who_wait() {
    let mut scene = Scene::new();
    let answer = scene.fetch(A, &scene.token(A)).await;
    let mut stream = scene.client.connect().await.unwrap();
    let path = format!("/v1/wait/{A}?after={}", answer.revision);
    let token = answer.next.spec.expose().to_owned();
    let waiting = tokio::spawn(async move { ask_on(&mut stream, "GET", &path, Some(&token), b"").await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begun = Instant::now();
    scene.server.take().unwrap().end().await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(waiting.await.unwrap().unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_dropped_serves_nobody_any_more() {
    let mut scene = Scene::new();
    scene.client.connect().await.unwrap();
    drop(scene.server.take());
    let begun = Instant::now();
    while scene.client.connect().await.is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "it still serves, and another one may have the office"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_that_was_used_up_works_again_after_the_server_was_killed_at_any_moment() {
    let mut scene = Scene::new();
    let mut token = scene.token(A);
    let mut used: Vec<String> = Vec::new();
    for round in 0..12_u64 {
        let (client, shown) = (scene.client.clone(), token.clone());
        let asking = tokio::spawn(async move {
            let mut stream = client.connect().await.ok()?;
            ask_on(&mut stream, "GET", &format!("/v1/spec/{A}"), Some(&shown), b"").await.ok()
        });
        tokio::time::sleep(Duration::from_micros(700 * round)).await;
        drop(scene.server.take());
        let is_answered = asking.await.unwrap().is_some_and(|answer| answer.status == 200);
        scene.start(&limits());
        if is_answered && let Some(before) = used.last() {
            assert_eq!(scene.spec(A, before).await.code(), "E302", "round {round}: its successor was shown");
        }
        // Answered or not, the node asks again, and goes on.
        let next = scene.fetch(A, &token).await.next.spec.expose().to_owned();
        for old in &used {
            assert_eq!(scene.spec(A, old).await.code(), "E302", "round {round}");
        }
        used.push(std::mem::replace(&mut token, next));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_fails_in_any_part_changes_nothing_at_all() {
    let scene = Scene::new();
    let first = scene.fetch(A, &scene.token(A)).await;
    let path = scene.base.path().join("state/server/lab/certificates.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let mut mixed: serde_json::Value = serde_json::from_str(&good).unwrap();
    // A certificate with the key of another one.
    mixed["current"]["key"] = mixed["next"]["key"].clone();
    mixed["next"]["certificate"] = mixed["current"]["certificate"].clone();
    std::fs::write(&path, mixed.to_string()).unwrap();
    assert!(scene.operator().reload().await.is_err());
    let after = scene.fetch(A, first.next.spec.expose()).await;
    assert_eq!(after.pins, first.pins, "nodes are told of what is shown");
    std::fs::write(&path, good).unwrap();
    scene.operator().reload().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_numbered_over_the_life_of_servers() {
    let mut scene = Scene::new();
    let answer = scene.fetch(A, &scene.token(A)).await;
    assert_eq!(scene.operator().record(&node(A), None).await.unwrap().results(), 0);
    for count in 1..=3 {
        assert_eq!(tell(&scene, A, answer.next.report.expose(), &result(&answer)).await, 204);
        let before = scene.operator().record(&node(A), None).await.unwrap();
        assert_eq!(before.results(), count);
        scene.server.take().unwrap().end().await;
        scene.start(&limits());
        let after = scene.operator().record(&node(A), None).await.unwrap();
        assert!(after.results() == count && after.server != before.server);
    }
}
