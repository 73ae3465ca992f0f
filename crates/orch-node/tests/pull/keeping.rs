//! A node that keeps itself as it should be: when it comes, and when it does not.

use std::time::{Duration, Instant};

use orch_model::Trigger;
use orch_model::config::Role;
use rustix::process::Signal;

use crate::common::wait_for;
use crate::common::{config_of, file, role};
use crate::node::Node;
use crate::server::{Certificate, Server, Spoil};

fn every(interval: &str) -> Role {
    let mut role = role();
    role.run = orch_model::config::Run { trigger: Trigger::Schedule, interval: interval.parse().unwrap() };
    role
}

fn results(server: &Server, count: usize) {
    wait_for("results", || (server.site().results.len() >= count).then_some(()));
}

#[test]
fn it_comes_again_every_interval() {
    let server = Server::start();
    server.site().change(&every("300ms"));
    let node = Node::of(&server);
    let _running = node.run();
    results(&server, 4);
    let site = server.site();
    for pair in site.fetches().windows(2) {
        assert!(pair[1] - pair[0] >= Duration::from_millis(250), "a tenth less is allowed, and not more");
    }
    assert!(site.results.iter().all(|result| result.report.attempts == 1), "it is applied once");
    assert_eq!(site.refusals, Vec::<String>::new());
}

#[test]
fn what_is_new_is_fetched_at_once_and_applied_once() {
    let server = Server::start();
    server.site().change(&every("1h"));
    let node = Node::of(&server);
    let _running = node.run();
    results(&server, 1);
    for round in 0..3 {
        let mut new = every("1h");
        new.files = vec![file("/etc/motd", &format!("{round}\n"))];
        let begin = Instant::now();
        server.site().change(&new);
        results(&server, round + 2);
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        let report = server.site().results[round + 1].report.clone();
        assert_eq!((report.spec_digest, report.attempts), (config_of(&new).digest(), 1));
    }
    assert_eq!(server.site().fetches().len(), 4);
    assert_eq!(server.site().refusals, Vec::<String>::new());
}

#[test]
fn drift_is_mended_at_the_next_interval() {
    let server = Server::start();
    let mut role = every("200ms");
    role.files = vec![file("/etc/motd", "hello\n")];
    server.site().change(&role);
    let node = Node::of(&server);
    let _running = node.run();
    results(&server, 1);
    node.0.write("/etc/motd", "somebody was here\n");
    wait_for("the drift to be told", || {
        server.site().results.iter().any(|result| result.drift.len() == 1).then_some(())
    });
    assert_eq!(node.0.read("/etc/motd"), "hello\n");
}

#[test]
fn one_that_waits_to_be_told_leaves_drift_alone_until_then() {
    let server = Server::start();
    let mut role = role();
    role.files = vec![file("/etc/motd", "hello\n")];
    server.site().change(&role);
    let node = Node::of(&server);
    {
        let _running = node.run();
        results(&server, 1);
    }
    node.0.write("/etc/motd", "somebody was here\n");
    let running = node.run();
    wait_for("the tokens to be renewed", || (server.site().fetches().len() == 2).then_some(()));
    wait_for("it to wait", || {
        server.site().asked.last().is_some_and(|(_, path)| path.starts_with("/v1/wait/")).then_some(())
    });
    assert_eq!(node.0.read("/etc/motd"), "somebody was here\n");
    let output = node.0.run(&["converge"], &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("process {} was told to converge\n", running.0.id()));
    wait_for("drift to be mended", || (node.0.read("/etc/motd") == "hello\n").then_some(()));
    // A result may be told twice: whoever told it was ended before it knew that it was heard.
    let before = server.site().fetches().len();
    server.site().revision += 1;
    wait_for("it to look again", || (server.site().fetches().len() > before).then_some(()));
}

#[test]
fn one_is_enough_and_it_stops_when_told() {
    let server = Server::start();
    let node = Node::of(&server);
    let mut running = node.run();
    results(&server, 1);
    assert_eq!(node.0.run(&["run"], &[]).status.code(), Some(3));
    assert_eq!(node.fetch().status.code(), Some(3));
    running.signal(Signal::TERM);
    let begin = Instant::now();
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(2));
    let output = node.0.run(&["converge"], &[]);
    assert_eq!(output.status.code(), Some(0), "where nobody runs it is done here: {output:?}");
    assert_eq!(server.site().results.len(), 2);
}

#[test]
fn it_stops_when_told_wherever_it_is() {
    let server = Server::start();
    let node = Node::of(&server);
    // In the middle of an answer, and between two tries.
    for spoil in [
        Spoil::Drip(vec![b'x'; 100_000], Duration::from_millis(10)),
        Spoil::Status(503, "Retry-After: 60\r\n"),
    ] {
        let fetches = server.site().fetches().len();
        server.site().spoil.push_back(spoil);
        let mut running = node.run();
        wait_for("it to ask", || (server.site().fetches().len() > fetches).then_some(()));
        running.signal(Signal::TERM);
        let begin = Instant::now();
        assert_eq!(running.0.wait().unwrap().code(), Some(0));
        assert!(begin.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let certificate = Certificate::new();
    let server = Server::start_with(&certificate);
    server.site().change(&every("400ms"));
    let node = Node::of(&server);
    let _running = node.run();
    results(&server, 1);
    server.site().spoil.extend(vec![Spoil::HangUp; 12]);
    wait_for("it to fail", || {
        node.kept("pull.json")["outcome"]["error"].as_str().map(|why| assert!(why.contains("reached")))
    });
    assert!(node.has("complete.json"));
    server.site().spoil.clear();
    results(&server, 2);
}

#[test]
fn another_enrolment_is_noticed() {
    let server = Server::start();
    let node = Node::of(&server);
    let running = node.run();
    results(&server, 1);
    let other = Server::start();
    node.enrol(&orch_model::pull::Enrolment {
        token: orch_model::token::Bearer::new(crate::server::mint(orch_model::token::Audience::Spec, 9)),
        ..other.enrolment()
    });
    running.signal(Signal::HUP);
    results(&other, 1);
}

#[test]
fn an_interval_without_end_is_no_trouble() {
    let server = Server::start();
    server.site().change(&every("999999999d"));
    let node = Node::of(&server);
    let mut running = node.run();
    results(&server, 1);
    running.signal(Signal::HUP);
    results(&server, 2);
    assert!(running.0.try_wait().unwrap().is_none());
}

#[test]
fn a_result_that_the_server_could_not_take_is_told_once_it_can() {
    let server = Server::start();
    server.site().change(&every("1h"));
    server.site().spoil_results.extend(vec![Spoil::Status(503, ""); 6]);
    let node = Node::of(&server);
    let _running = node.run();
    results(&server, 1);
    assert_eq!(server.site().fetches().len(), 1);
}

#[test]
fn a_renewal_that_was_refused_is_followed_by_a_full_look() {
    let server = Server::start();
    let node = Node::of(&server);
    node.fetched();
    server.site().spoil.push_back(Spoil::Status(422, ""));
    {
        let _running = node.run();
        wait_for("the refusal", || node.has("failed.json").then_some(()));
        wait_for("it to be told", || (server.site().results.len() == 2).then_some(()));
    }
    let _running = node.run();
    // The refusal may be told once more: whoever told it was ended before it knew that it was heard.
    wait_for("a full look", || (node.has("complete.json") && !node.has("failed.json")).then_some(()));
}

#[test]
fn waiting_keeps_its_connection_and_is_not_too_eager() {
    let server = Server::start();
    let node = Node::of(&server);
    let _running = node.run();
    wait_for("three waits", || (server.site().waits().len() >= 3).then_some(()));
    let times = server.site().waits();
    assert!(times[2] - times[1] >= Duration::from_secs(1));
    assert!(server.site().connections <= 2, "one for the fetch and one for waiting");
}

#[test]
fn a_server_that_cannot_be_waited_at_is_left_alone_and_still_heard_of_otherwise() {
    let server = Server::start();
    server.site().spoil_waits.extend(vec![Spoil::Status(404, ""); 5]);
    let node = Node::of(&server);
    let running = node.run();
    results(&server, 1);
    wait_for("the first wait", || (server.site().waits().len() == 1).then_some(()));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(server.site().waits().len(), 1);
    running.signal(Signal::HUP);
    results(&server, 2);
}

#[test]
fn a_worker_outlives_who_started_it_and_its_result_is_told_the_next_time() {
    let server = Server::start();
    let node = Node::of(&server);
    let gate = node.0.at("/gate");
    let mut role = role();
    role.files = vec![file("/etc/motd", "hello\n")];
    role.health =
        vec![orch_model::Health::Command(vec!["test".into(), "-e".into(), gate.display().to_string()])];
    server.site().change(&role);
    let mut running = node.run();
    wait_for("the file", || node.0.at("/etc/motd").exists().then_some(()));
    running.signal(Signal::TERM);
    assert_eq!(running.0.wait().unwrap().code(), Some(0), "it stops, whatever the worker does");
    assert_eq!(server.site().results, []);
    node.0.write("/gate", "");
    wait_for("the worker to be done", || node.has("complete.json").then_some(()));
    let report = node.fetched();
    assert_eq!(report.attempts, 1, "it is not applied again");
    assert_eq!(server.site().results[0].report, report);
}
