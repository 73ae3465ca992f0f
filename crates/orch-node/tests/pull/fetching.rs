//! One fetch that finds its server: what is applied, kept and told.

use std::net::TcpListener;
use std::time::Duration;

use orch_model::{ApplyStatus, Mode};

use crate::common::wait_for;
use crate::common::{config_of, file, role};
use crate::node::Node;
use crate::server::{Certificate, Server, Spoil};

#[test]
fn a_node_fetches_its_configuration_applies_it_and_tells() {
    let server = Server::start();
    let mut role = role();
    role.files = vec![file("/etc/motd", "hello\n")];
    server.site().change(&role);
    let node = Node::of(&server);
    let report = node.fetched();
    assert_eq!((report.status, report.mode), (ApplyStatus::Complete, Mode::Pull));
    assert_eq!(report.spec_digest, config_of(&role).digest());
    assert_eq!(node.0.read("/etc/motd"), "hello\n");
    assert_eq!(node.0.mode("/var/lib/orch/pull.json"), 0o600);
    let site = server.site();
    assert_eq!(site.results.len(), 1);
    assert_eq!(site.results[0].report, report);
    assert_eq!(site.results[0].drift, []);
    let now = jiff::Timestamp::now().as_second();
    assert!((now - 60..=now).contains(&site.results[0].clock));
    assert!(!site.progress.is_empty(), "it says what it does while it does it");
    let kept = node.kept("pull.json");
    assert_eq!((&kept["revision"], &kept["outcome"]["error"]), (&2.into(), &serde_json::Value::Null));
    assert!(kept.get("undelivered").is_none());
    let enrolment = serde_json::to_string(&server.enrolment().token).unwrap();
    assert!(!kept.to_string().contains(&enrolment), "the first token is not kept a second time");
}

#[test]
fn what_is_as_it_should_be_is_not_applied_again_and_told_again() {
    let server = Server::start();
    let node = Node::of(&server);
    let first = node.fetched();
    let before = node.0.read("/var/lib/orch/complete.json");
    for _ in 0..3 {
        assert_eq!(node.fetched(), first);
    }
    assert_eq!(node.0.read("/var/lib/orch/complete.json"), before);
    assert_eq!(first.attempts, 1);
    let site = server.site();
    assert_eq!(site.results.len(), 4);
    assert!(site.results.iter().all(|result| result.report == first));
}

#[test]
fn what_has_drifted_is_applied_again_and_told() {
    let server = Server::start();
    let mut role = role();
    role.files = vec![file("/etc/motd", "hello\n")];
    server.site().change(&role);
    let node = Node::of(&server);
    node.fetched();
    node.0.write("/etc/motd", "somebody was here\n");
    let report = node.fetched();
    assert_eq!((report.attempts, report.changed()), (2, true));
    assert_eq!(node.0.read("/etc/motd"), "hello\n");
    let site = server.site();
    let drift: Vec<&str> = site.results[1].drift.iter().map(|drift| drift.name.as_str()).collect();
    assert_eq!(drift, ["/etc/motd"]);
}

#[test]
fn what_is_new_is_applied_once() {
    let server = Server::start();
    let node = Node::of(&server);
    node.fetched();
    let mut role = role();
    role.files = vec![file("/etc/motd", "new\n")];
    server.site().change(&role);
    let report = node.fetched();
    assert_eq!((report.spec_digest, report.attempts), (config_of(&role).digest(), 1));
    assert_eq!(server.site().results[1].drift, [], "another configuration is no drift");
    assert_eq!(node.fetched(), report);
}

#[test]
fn a_certificate_is_known_by_its_digest_whatever_its_dates() {
    for (from, to) in [(1980, 1990), (3000, 3010)] {
        let server = Server::start_with(&Certificate::between(from, to));
        assert_eq!(Node::of(&server).fetched().status, ApplyStatus::Complete, "{from}");
    }
}

#[test]
fn the_pins_that_come_with_an_answer_count_from_then_on() {
    let (old, new) = (Certificate::new(), Certificate::new());
    let server = Server::start_with(&old);
    let node = Node::of(&server);
    server.site().pins = vec![old.pin(), new.pin()];
    node.fetched();
    server.show(&new);
    server.site().pins = vec![new.pin()];
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    server.show(&old);
    node.fetched();
    assert!(node.kept("pull.json")["outcome"]["error"].as_str().unwrap().contains("another certificate"));
    server.show(&new);
    server.site().pins.clear();
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    assert_eq!(node.fetched().status, ApplyStatus::Complete, "no pin at all would strand the node");
}

#[test]
fn a_server_that_is_just_being_started_is_waited_for_within_one_try() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let certificate = Certificate::new();
    let mut enrolment = Server::start_with(&certificate).enrolment();
    enrolment.server = format!("https://localhost:{}", address.port());
    let node = Node(crate::common::Tree::new());
    node.enrol(&enrolment);
    let child = node.0.start(&["fetch", "--tries-ms", "0"], &[]);
    std::thread::sleep(Duration::from_millis(300));
    let server = Server::listen(TcpListener::bind(address).unwrap(), &certificate);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(server.site().fetches().len(), 1);
}

#[test]
fn a_new_enrolment_begins_anew() {
    let server = Server::start();
    let node = Node::of(&server);
    node.fetched();
    drop(server);
    let other = Server::start();
    node.enrol(&orch_model::pull::Enrolment {
        token: orch_model::token::Bearer::new(crate::server::mint(orch_model::token::Audience::Spec, 5)),
        ..other.enrolment()
    });
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    assert_eq!(other.site().refusals, Vec::<String>::new());
}

#[test]
fn a_result_that_the_server_does_not_take_is_told_the_next_time() {
    let server = Server::start();
    let node = Node::of(&server);
    let mut role = role();
    role.files = vec![file("/etc/motd", "hello\n")];
    server.site().change(&role);
    server.site().spoil_results.extend(vec![Spoil::Status(503, ""); 5]);
    let report = node.fetched();
    assert_eq!(report.status, ApplyStatus::Complete, "that the server does not know does not undo it");
    assert_eq!(server.site().results, []);
    assert_eq!(
        node.kept("pull.json")["undelivered"]["report"]["spec_digest"],
        report.spec_digest.to_string()
    );
    node.0.write("/etc/motd", "somebody was here\n");
    node.fetched();
    assert!(node.kept("pull.json").get("undelivered").is_none());
    let site = server.site();
    let drifts: Vec<usize> = site.results.iter().map(|result| result.drift.len()).collect();
    assert_eq!(drifts, [0, 1], "the older one first");
    assert_eq!(site.results[0].report, report);
}

#[test]
fn progress_is_told_and_not_too_often() {
    let server = Server::start();
    let node = Node::of(&server);
    let mut role = role();
    role.files = (0..400).map(|number| file(&format!("/etc/many/{number}"), "x")).collect();
    role.health = vec![orch_model::Health::Command(vec!["sleep".into(), "0.7".into()])];
    server.site().change(&role);
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    let site = server.site();
    let is_of_worker = |line: &str| line.starts_with("changed ") || line.starts_with("skipped ");
    assert!(site.progress.iter().any(|(_, line)| is_of_worker(line)), "{:?}", site.progress);
    // There were some four hundred lines.
    assert!(site.progress.len() < 20, "{:?}", site.progress);
}

#[test]
fn only_one_fetches_at_a_time() {
    let server = Server::start();
    let node = Node::of(&server);
    server.site().spoil.push_back(Spoil::Drip(b"HTTP/1.1 200 OK\r\n".to_vec(), Duration::from_millis(100)));
    let first = node.0.start(&["fetch"], &[]);
    wait_for("the first to ask", || (!server.site().fetches().is_empty()).then_some(()));
    let second = node.fetch();
    assert_eq!(second.status.code(), Some(3), "{second:?}");
    drop(crate::node::Running(first));
}

#[test]
fn a_clock_that_is_wrong_is_told_and_does_not_matter() {
    let server = Server::start();
    let node = Node::of(&server);
    assert!(node.fetch_with(&["--skew", "-86400"]).status.success());
    let ahead = jiff::Timestamp::now().as_second() - server.site().results[0].clock;
    assert!((86_400..86_460).contains(&ahead), "{ahead}");
}
