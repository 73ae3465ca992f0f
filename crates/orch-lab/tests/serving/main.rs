//! What the wire around an API promises: what is asked comes in, what is answered comes out, and what goes wrong on purpose
//! goes wrong in just that way.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod client;
mod whole;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use client::Client;
use orch_lab::{Answer, Api, Asked, Certificate, Fault, Rule, ServeSettings, Serving};
use serde_json::json;

/// Says again what it is asked, and counts.
#[derive(Default)]
struct Echo {
    asked: AtomicU32,
}

#[async_trait]
impl Api for Echo {
    async fn answer(&self, asked: Asked) -> Answer {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let said = json!({
            "method": asked.method, "path": asked.path, "query": asked.query,
            "token": asked.header("authorization"), "length": asked.body.len(),
        });
        Answer::json(599, &said).because("no\nluck").with("x-lab", &"yes")
    }
}

struct Scene {
    serving: Serving,
    echo: Arc<Echo>,
    settings: ServeSettings,
    fingerprint: String,
}

impl Scene {
    fn set() -> Self {
        Self::with(ServeSettings { largest_body: 100_000, ..ServeSettings::default() })
    }

    fn with(settings: ServeSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let certificate = Certificate::make(&["127.0.0.1".into()]).unwrap();
        let echo = Arc::new(Echo::default());
        let api: Arc<dyn Api> = Arc::<Echo>::clone(&echo);
        let serving = Serving::begin(listener, &certificate, api, settings.clone()).unwrap();
        Self { serving, echo, settings, fingerprint: certificate.fingerprint() }
    }

    async fn client(&self) -> Client {
        Client::connect(self.serving.address()).await
    }

    fn asked(&self) -> u32 {
        self.echo.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_question_comes_in_and_its_answer_goes_out_with_its_words_on_one_connection() {
    let scene = Scene::set();
    let mut client = scene.client().await;
    assert_eq!(client.fingerprint(), scene.fingerprint);
    for length in [0, 70_000] {
        let body = vec![b'x'; length];
        let heard = client.ask("POST /a%2Fb?c=d+e HTTP/1.1\r\nAuthorization: very secret", &body).await;
        assert_eq!(heard.line, "HTTP/1.1 599 no luck");
        assert!(heard.head.contains("x-lab: yes"), "{}", heard.head);
        let said: serde_json::Value = serde_json::from_str(&heard.body).unwrap();
        let expected = json!({
            "method": "POST", "path": "/a%2Fb", "query": "c=d+e", "token": "very secret", "length": length,
        });
        assert_eq!(said, expected);
    }
    let calls = scene.serving.calls();
    assert_eq!(calls.count(), 2);
    let call = calls.list().remove(0);
    assert_eq!((call.method.as_str(), call.path.as_str(), call.status), ("POST", "/a%2Fb", 599));
    assert!(!format!("{:?}", calls.list()).contains("secret"));
    calls.reset();
    assert_eq!((calls.count(), calls.list().len()), (0, 0));
}

#[tokio::test]
async fn older_clients_speak_the_older_tls() {
    let scene = Scene::set();
    let mut client = Client::connect_by(scene.serving.address(), &rustls::version::TLS12).await;
    assert_eq!(client.ask("GET / HTTP/1.1", b"").await.line, "HTTP/1.1 599 no luck");
}

#[tokio::test]
async fn a_question_that_is_too_large_never_reaches_the_api() {
    let scene = Scene::set();
    let heard = scene.client().await.ask("POST / HTTP/1.1", &vec![0; 100_001]).await;
    assert!(heard.line.starts_with("HTTP/1.1 413"), "{}", heard.line);
    assert_eq!(scene.asked(), 0);
}

#[tokio::test]
async fn who_asks_too_often_is_told_when_to_come_back() {
    let scene = Scene::set();
    scene.settings.faults.add(Rule::once(Fault::TooMany));
    let mut client = scene.client().await;
    let heard = client.ask("GET /v1/servers HTTP/1.1", b"").await;
    assert!(heard.line.starts_with("HTTP/1.1 429"), "{}", heard.line);
    for header in ["retry-after: 1", "ratelimit-limit: ", "ratelimit-remaining: 0", "ratelimit-reset: "] {
        assert!(heard.head.contains(header), "{}", heard.head);
    }
    assert!(heard.body.contains(r#""code":"rate_limit_exceeded""#), "{}", heard.body);
    assert_eq!(scene.asked(), 0, "nothing was done");
    assert_eq!(client.ask("GET / HTTP/1.1", b"").await.line, "HTTP/1.1 599 no luck");
}

#[tokio::test]
async fn an_error_of_the_server_comes_before_anything_is_done() {
    let scene = Scene::set();
    scene.settings.faults.add(Rule::once(Fault::ServerError).on("POST", "/x"));
    let mut client = scene.client().await;
    assert_eq!(client.ask("GET /x HTTP/1.1", b"").await.line, "HTTP/1.1 599 no luck");
    assert!(client.ask("POST /x HTTP/1.1", b"").await.line.starts_with("HTTP/1.1 500"));
    assert_eq!(scene.asked(), 1);
}

#[tokio::test]
async fn a_silent_server_has_done_it_and_says_nothing_until_the_other_goes() {
    let scene = Scene::set();
    scene.settings.faults.add(Rule::once(Fault::SilentAfter));
    let mut client = scene.client().await;
    client.send("POST / HTTP/1.1", b"x").await;
    let calls = scene.serving.calls().clone();
    until(|| calls.count() == 1).await;
    assert_eq!(scene.asked(), 1, "it was done");
    let heard = tokio::time::timeout(Duration::from_millis(200), client.hear()).await;
    assert!(heard.is_err(), "{heard:?}");
    drop(client);
    assert_eq!(scene.client().await.ask("GET / HTTP/1.1", b"").await.line, "HTTP/1.1 599 no luck");
}

/// Takes as long as it is let.
#[derive(Default)]
struct Slow {
    go: tokio::sync::Notify,
    done: AtomicU32,
}

#[async_trait]
impl Api for Slow {
    async fn answer(&self, _: Asked) -> Answer {
        self.go.notified().await;
        self.done.fetch_add(1, Ordering::SeqCst);
        Answer::empty(200)
    }
}

#[tokio::test]
async fn what_was_asked_for_is_done_also_where_who_asked_is_gone() {
    let certificate = Certificate::make(&["127.0.0.1".into()]).unwrap();
    let slow = Arc::new(Slow::default());
    let api: Arc<dyn Api> = Arc::<Slow>::clone(&slow);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let serving = Serving::begin(listener, &certificate, api, ServeSettings::default()).unwrap();
    let mut client = Client::connect(serving.address()).await;
    client.send("POST / HTTP/1.1", b"x").await;
    let waiting = Arc::clone(&slow);
    until(|| Arc::strong_count(&waiting) > 3).await;
    drop(client);
    slow.go.notify_one();
    let (done, calls) = (Arc::clone(&slow), serving.calls().clone());
    until(|| done.done.load(Ordering::SeqCst) == 1 && calls.count() == 1).await;
}

#[tokio::test]
async fn a_cut_answer_has_a_head_and_half_a_body() {
    let scene = Scene::set();
    scene.settings.faults.add(Rule::once(Fault::CutAnswer));
    let heard = scene.client().await.ask("POST / HTTP/1.1", b"x").await;
    assert_eq!(heard.line, "HTTP/1.1 599 no luck");
    assert!(heard.is_cut && heard.body.starts_with('{') && !heard.body.ends_with('}'), "{heard:?}");
    assert_eq!(scene.asked(), 1, "it was done");
}

#[tokio::test]
async fn another_certificate_is_shown_to_those_who_come_new() {
    let scene = Scene::set();
    let mut before = scene.client().await;
    scene.settings.faults.add(Rule::always(Fault::OtherCertificate));
    let (one, two) = (scene.client().await.fingerprint(), scene.client().await.fingerprint());
    assert!(one != scene.fingerprint && two != scene.fingerprint && one != two);
    assert_eq!(before.ask("GET / HTTP/1.1", b"").await.line, "HTTP/1.1 599 no luck", "who was there stays");
    scene.settings.faults.clear();
    assert_eq!(scene.client().await.fingerprint(), scene.fingerprint);
}

#[tokio::test]
async fn every_question_takes_as_long_as_it_is_told_to() {
    let latency = Duration::from_millis(150);
    let scene = Scene::with(ServeSettings { latency, ..ServeSettings::default() });
    let mut client = scene.client().await;
    let begin = Instant::now();
    client.ask("GET / HTTP/1.1", b"").await;
    assert!(begin.elapsed() >= latency);
}

#[tokio::test]
async fn an_end_leaves_nobody_listening_and_waits_for_nobody_who_is_silent() {
    let scene = Scene::set();
    scene.settings.faults.add(Rule::always(Fault::SilentAfter));
    let mut client = scene.client().await;
    client.send("GET / HTTP/1.1", b"").await;
    let (address, calls) = (scene.serving.address(), scene.serving.calls().clone());
    until(|| calls.count() == 1).await;
    tokio::time::timeout(Duration::from_secs(10), scene.serving.end()).await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

async fn until(mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.unwrap();
}
