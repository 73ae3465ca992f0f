//! A cut at any moment: the next fetch heals it, no token is lost, and no file is half.

use std::time::Duration;

use orch_model::ApplyStatus;
use orch_model::config::Role;
use serde_json::Value as Json;

use crate::common::{config_of, file, role};
use crate::node::Node;
use crate::server::Server;

fn changed(round: u64) -> Role {
    let mut role = role();
    role.files = (0..20).map(|number| file(&format!("/etc/many/{number}"), &format!("{round}\n"))).collect();
    role
}

/// Every file of the node's state is whole.
fn check_state(node: &Node) {
    for name in ["pull.json", "complete.json", "failed.json", "spec.json"] {
        // A worker that goes on may take one away at any moment.
        if let Ok(text) = std::fs::read_to_string(node.0.at(&format!("/var/lib/orch/{name}"))) {
            assert!(serde_json::from_str::<Json>(&text).is_ok(), "{name}: {text}");
        }
    }
}

#[test]
fn a_cut_at_any_moment_is_healed_by_the_next_fetch() {
    let server = Server::start();
    let node = Node::of(&server);
    for round in 0..40 {
        server.site().change(&changed(round));
        let mut child = node.0.start(&["fetch", "--tries-ms", "0,10,20"], &[]);
        std::thread::sleep(Duration::from_micros(1500 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        check_state(&node);
        let report = node.fetched();
        assert_eq!(report.status, ApplyStatus::Complete, "{round}: {report:?}");
        assert_eq!(report.spec_digest, config_of(&changed(round)).digest());
        assert_eq!(node.0.read("/etc/many/19"), format!("{round}\n"));
    }
    assert_eq!(server.site().refusals, Vec::<String>::new(), "no token was ever lost");
    let drafts: Vec<String> = node.0.snapshot().into_iter().filter(|line| line.contains("/.orch-")).collect();
    assert_eq!(drafts, Vec::<String>::new());
}

#[test]
fn one_that_stays_is_cut_at_any_moment_and_goes_on_the_next_time() {
    let server = Server::start();
    let node = Node::of(&server);
    for round in 0..20 {
        server.site().change(&changed(round));
        let running = node.run();
        std::thread::sleep(Duration::from_micros(3000 * round));
        drop(running);
        check_state(&node);
    }
    let last = config_of(&changed(19)).digest();
    let _running = node.run();
    crate::common::wait_for("the last configuration to be told", || {
        server.site().results.iter().any(|result| result.report.spec_digest == last).then_some(())
    });
    assert_eq!(server.site().refusals, Vec::<String>::new());
}
