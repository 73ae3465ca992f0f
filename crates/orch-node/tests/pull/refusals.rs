//! Fetches that do not find their server, or are refused by it, or do not believe it.

use std::time::{Duration, Instant};

use orch_model::ApplyStatus;
use serde_json::json;

use crate::common::{file, json_of, role};
use crate::node::Node;
use crate::server::{Certificate, Server, Spoil, bytes};

/// A node whose server spoils its next answers, and the report of its fetch.
fn spoiled(spoil: Vec<Spoil>) -> (Server, Node) {
    let server = Server::start();
    server.site().spoil.extend(spoil);
    let node = Node::of(&server);
    (server, node)
}

#[test]
fn a_server_without_time_is_asked_again_when_the_schedule_says() {
    for status in [500, 503, 408, 429] {
        let (server, node) = spoiled(vec![Spoil::Status(status, ""); 4]);
        let begin = Instant::now();
        assert_eq!(node.fetched().status, ApplyStatus::Complete, "{status}");
        let fetches: Vec<Duration> = server.site().fetches().iter().map(|at| *at - begin).collect();
        assert_eq!(fetches.len(), 5, "{status}");
        for (at, due) in fetches.iter().zip([0, 10, 20, 40, 80]) {
            assert!(*at >= Duration::from_millis(due), "{fetches:?}");
        }
    }
}

#[test]
fn a_server_that_says_when_is_left_alone_until_then() {
    let (server, node) = spoiled(vec![Spoil::Status(429, "Retry-After: 1\r\n")]);
    node.fetched();
    let fetches = server.site().fetches();
    assert!(fetches[1] - fetches[0] >= Duration::from_millis(990));
}

#[test]
fn no_more_than_five_tries_are_made() {
    let (server, node) = spoiled(vec![Spoil::Status(500, ""); 9]);
    let report = node.fetched();
    assert_eq!(report.status, ApplyStatus::Failed);
    assert_eq!(server.site().fetches().len(), 5);
    assert_eq!(
        node.failure(),
        format!("the server answered with the status 500 (asked 5 times at https://{})", server.address)
    );
    assert_eq!(report.spec.as_str(), "base", "as its token says");
}

#[test]
fn a_refusal_is_final_at_once() {
    for status in [400, 401, 403, 404, 405, 410, 413, 422, 451, 301, 304] {
        let (server, node) = spoiled(vec![Spoil::Status(status, ""); 2]);
        let output = node.fetch();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(server.site().fetches().len(), 1, "{status}");
        assert_eq!(node.failure(), format!("the server answered with the status {status}"));
    }
}

#[test]
fn the_words_of_the_server_are_the_reason() {
    let server = Server::start();
    let mut enrolment = server.enrolment();
    enrolment.token = orch_model::token::Bearer::new("x.y".into());
    let node = Node(crate::common::Tree::new());
    node.enrol(&enrolment);
    let report = node.fetched();
    assert_eq!(node.failure(), "E300: what was given is not a token");
    assert_eq!((report.phase.as_str(), report.attempts), ("config", 1));
    assert_eq!(node.fetched().attempts, 2);
}

#[test]
fn another_certificate_is_refused_and_told_as_such() {
    let server = Server::start();
    let node = Node::of(&server);
    server.show(&Certificate::new());
    let report = node.fetched();
    let words = "the server shows another certificate than the pinned ones";
    assert!(report.error.unwrap().starts_with(words));
    assert!(node.failure().starts_with(words));
    assert_eq!(server.site().asked, [], "no token was shown to a stranger");
}

#[test]
fn a_pinned_certificate_without_its_key_is_worth_nothing() {
    let certificate = Certificate::new();
    let server = Server::start_with(&certificate.stolen());
    let node = Node::of(&server);
    assert_eq!(server.enrolment().pins, [certificate.pin()]);
    let error = node.fetched().error.unwrap();
    assert!(error.starts_with("the connection to the server cannot be secured"), "{error}");
    assert_eq!(server.site().asked, [], "no token was shown to a stranger");
    server.show(&certificate);
    assert_eq!(node.fetched().status, ApplyStatus::Complete, "the control");
}

#[test]
fn what_was_applied_stays_applied_while_nobody_answers_and_not_when_the_server_refuses() {
    let server = Server::start();
    let node = Node::of(&server);
    let first = node.fetched();
    server.site().spoil.extend(vec![Spoil::HangUp; 5]);
    assert_eq!(node.fetched().status, ApplyStatus::Failed);
    assert!(node.has("complete.json") && !node.has("failed.json"));
    assert!(node.kept("pull.json")["outcome"]["error"].as_str().unwrap().contains("cannot be reached"));
    assert_eq!(node.fetched(), first, "it is not applied again for that");
    server.site().spoil.push_back(Spoil::Status(422, ""));
    node.fetched();
    assert!(!node.has("complete.json"));
    assert_eq!(node.failure(), "the server answered with the status 422");
    let told = server.site().results.last().unwrap().report.error.clone();
    assert_eq!(told.as_deref(), Some("the server answered with the status 422"), "who refused is told so");
    assert!(!node.fetched().changed(), "it is looked at again, and was as it should be");
    assert!(node.has("complete.json") && !node.has("failed.json"));
}

#[test]
fn an_answer_that_is_not_believed_changes_nothing() {
    let mut evil = role();
    evil.files = vec![file("/etc/motd", "evil\n")];
    let good = json_of(&evil);
    let mut other_node = good.clone();
    other_node["node"] = "test.db@here".into();
    let other_digest = {
        // With a digest that fits, so that it is refused for whose it is.
        let parts = (
            &other_node["node"],
            &other_node["spec"],
            &other_node["hostname"],
            orch_model::Digest::of(&evil),
        );
        orch_model::Digest::of(&parts)
    };
    other_node["digest"] = json!(other_digest);
    let mut other_content = good.clone();
    other_content["files"][0]["content"] = "more evil\n".into();
    for (spec, words) in [
        (other_node, "it is the configuration of `test.db@here`"),
        (other_content, "does not have its digest"),
        (json!({}), "missing field"),
        (json!([[[[]]]]), "invalid"),
    ] {
        let server = Server::start();
        server.site().spec = spec;
        let node = Node::of(&server);
        let report = node.fetched();
        assert!(report.error.clone().unwrap().contains(words), "{:?}", report.error);
        assert!(node.failure().starts_with("the server's answer is not believed: "));
        assert!(!node.0.at("/etc/motd").exists() && !node.has("pull.json"));
        assert_eq!(server.site().fetches().len(), 1);
    }
}

#[test]
fn an_answer_without_end_is_refused() {
    let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1_u64 << 30).into_bytes();
    let head = [&b"HTTP/1.1 200 OK\r\n"[..], &b"X-Y: z\r\n".repeat(1 << 20)].concat();
    let endless = [&b"HTTP/1.1 200 OK\r\nX: "[..], &b"y".repeat(8 << 20)].concat();
    for (spoil, words) in [
        (huge, "larger than 16 MiB"),
        (head, "longer than 16 KiB"),
        (endless, "longer than 16 KiB"),
        (b"220 smtp.example ESMTP\r\n\r\n".to_vec(), "it is not HTTP"),
        (bytes(200, "Transfer-Encoding: chunked\r\n", b""), "how long"),
    ] {
        let (server, node) = spoiled(vec![Spoil::Raw(spoil)]);
        let report = node.fetched();
        assert!(report.error.clone().unwrap().contains(words), "{:?}", report.error);
        assert_eq!(server.site().fetches().len(), 1);
    }
}

#[test]
fn a_server_that_answers_drop_by_drop_gets_no_more_time() {
    let drops = bytes(200, "", &[b'x'; 1000]);
    let (server, node) = spoiled(vec![Spoil::Drip(drops, Duration::from_millis(20)); 2]);
    let begin = Instant::now();
    let output = node.0.run(&["fetch", "--tries-ms", "0,1", "--call-ms", "300"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert_eq!(server.site().fetches().len(), 2);
    assert!(node.failure().starts_with("the server did not answer in time"));
}

#[test]
fn who_does_not_speak_tls_is_no_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // Whoever comes is greeted with this.
            let _ = std::io::Write::write_all(&mut stream.unwrap(), b"HTTP/1.1 200 OK\r\n\r\n");
        }
    });
    let mut enrolment = Server::start().enrolment();
    enrolment.server = format!("https://{address}");
    let node = Node(crate::common::Tree::new());
    node.enrol(&enrolment);
    let error = node.fetched().error.unwrap();
    assert!(error.contains("cannot be secured") || error.contains("cannot be reached"), "{error}");
}

#[test]
fn a_node_that_was_not_told_to_pull_says_so_and_touches_nothing() {
    let tree = crate::common::Tree::new();
    let output = tree.run(&["fetch"], &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("was not told to pull"));
    tree.write("/var/lib/orch/enrolment.json", "{\"token\": \"very-secret\", ");
    let output = tree.run(&["fetch"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("very-secret"));
}
