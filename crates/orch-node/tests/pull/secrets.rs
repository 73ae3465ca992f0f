//! A node that fetches: it says what it has, takes what it lacks, and shows its own key once the server knows it.

use std::fs;

use orch_model::{ApplyStatus, NodeKeys, Trigger};
use rustix::process::Signal;

use crate::common::of;
use crate::common::secrets::{MARKER, Site, digest_of, secret};
use crate::common::wait_for;
use crate::node::Node;
use crate::server::{Server, Spoil};

fn server_with(site: &Site) -> Server {
    let server = Server::start();
    server.site().change_to(site);
    server
}

#[test]
fn a_node_says_whom_secrets_are_sealed_for_and_which_it_has() {
    let mut site = Site::of(vec![secret("a", "/run/secrets/a"), secret("b", "/run/secrets/b")]);
    let server = server_with(&site);
    let node = Node::of(&server);
    let report = node.fetched();
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert_eq!(node.0.read("/run/secrets/b"), format!("{MARKER} of b"));
    site.set("b", "another");
    server.site().change_to(&site);
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    assert_eq!(node.0.read("/run/secrets/b"), "another");
    let keys: NodeKeys = serde_json::from_value(node.kept("keys.json")).unwrap();
    let site = server.site();
    let seen = &site.presences;
    assert!(seen.iter().all(|one| one.age == keys.age.as_str() && one.host_key.is_empty()), "{seen:?}");
    assert!(seen.iter().chain(&site.tellers).all(|one| one.settled == "true"), "there is none to show");
    let digests = ["a", "b"].map(|name| digest_of(&format!("{MARKER} of {name}")).as_str()[..12].to_owned());
    assert_eq!(
        (seen[0].holds.as_str(), seen[1].holds.as_str()),
        ("", format!("{},{}", digests[0], digests[1]).as_str())
    );
}

#[test]
fn what_the_server_does_not_send_is_a_failure_by_name_and_the_next_time_heals_it() {
    let site = Site::of(vec![secret("a", "/run/secrets/a"), secret("b", "/run/secrets/b")]);
    let server = server_with(&site);
    server.site().secrets.clear();
    let node = Node::of(&server);
    let report = node.fetched();
    assert_eq!(
        report.error.as_deref(),
        Some("the server did not send secret `a`; the server did not send secret `b`")
    );
    assert_eq!((report.status, report.spec_digest), (ApplyStatus::Failed, site.config().digest()));
    assert_eq!(server.site().results[0].report, report);
    assert!(node.has("failed.json") && !node.has("spec.json"));
    server.site().secrets = site.values;
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    assert!(!node.has("failed.json"));
}

#[test]
fn a_parcel_for_another_node_is_refused_and_told() {
    let site = Site::with_one();
    let server = server_with(&site);
    let node = Node::of(&server);
    let other = orch_secrets::seal::Identity::generate().recipient().to_string().parse().unwrap();
    let parcel = site.pack(&["db".parse().unwrap()], &other);
    server.site().secrets.clear();
    server.site().planted = Some(parcel);
    let why = node.fetched().error.unwrap();
    assert!(why.contains("not sealed for this identity"), "{why}");
    assert_eq!(server.site().results[0].report.error.as_deref(), Some(why.as_str()));
    assert!(!node.0.at("/run/secrets").exists());
}

#[test]
fn secrets_that_were_lost_are_fetched_again_also_where_nothing_is_new() {
    let mut site = Site::with_one();
    let server = server_with(&site);
    let node = Node::of(&server);
    node.fetched();
    fs::remove_file(node.0.at("/var/lib/orch/secrets.age")).unwrap();
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    assert_eq!(node.0.held_names(), ["db"]);
    // One that converges only when it is told to, and is only renewed here.
    site.role.run.trigger = Trigger::Manual;
    server.site().change_to(&site);
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    let results = server.site().results.len();
    for (what, is_expected) in [("age.key", false), ("secrets.age", true)] {
        if is_expected {
            fs::remove_file(node.0.at("/var/lib/orch").join(what)).unwrap();
        }
        let fetches = server.site().fetches().len();
        let running = node.run();
        wait_for("a fetch", || (server.site().fetches().len() > fetches).then_some(()));
        if is_expected {
            wait_for("the secrets", || node.has("secrets.age").then_some(()));
            wait_for("the result", || (server.site().results.len() > results).then_some(()));
        } else {
            wait_for("it to wait", || (!server.site().waits().is_empty()).then_some(()));
            assert_eq!(server.site().results.len(), results, "a renewal says nothing");
        }
        running.signal(Signal::TERM);
    }
}

/// A node with an SSH server that shows a key that it was given; nothing where no keys can be made.
fn with_server(server: &Server) -> Option<(Node, String)> {
    let path = std::env::var_os("PATH")?;
    let mut programs = std::env::split_paths(&path).map(|folder| folder.join("ssh-keygen"));
    let Some(keygen) = programs.find(|path| path.is_file()) else {
        println!("skipped: needs ssh-keygen");
        return None;
    };
    let node = Node::of(server);
    node.0.program("/usr/bin/ssh-keygen", &format!("exec '{}' \"$@\"", keygen.display()));
    node.0.program("/usr/sbin/sshd", "exit 0");
    node.0.write("/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n");
    node.0.write("/etc/ssh/ssh_host_ed25519_key", "given");
    Some((node, "/etc/ssh/ssh_host_ed25519_key".into()))
}

#[test]
fn a_node_shows_its_own_host_key_once_a_server_has_answered() {
    let server = Server::start();
    let Some((node, shown)) = with_server(&server) else { return };
    server.site().spoil.push_back(Spoil::Status(403, ""));
    node.fetch();
    assert_eq!(node.0.read(&shown), "given", "nobody has written its own down yet");
    assert!(node.has("host_key"));
    let output = node.fetch();
    let site = server.site();
    let keys: NodeKeys = serde_json::from_value(node.kept("keys.json")).unwrap();
    assert!(keys.settled, "{output:?}");
    assert_eq!(site.presences[0].host_key, keys.host_key.unwrap().as_str());
    assert!(!node.has("host_key") && node.0.read(&shown).contains("OPENSSH PRIVATE KEY"));
    assert_eq!(node.0.mode(&shown), 0o600);
    assert_eq!(site.presences[0].settled, "false", "not before it has settled");
    assert!(site.tellers.iter().all(|one| one.settled == "true" && one.age == site.presences[0].age));
    assert_eq!(site.tellers.last().unwrap().host_key, site.presences[0].host_key);
}

#[test]
fn a_node_that_cannot_show_its_own_host_key_says_so_and_why_until_it_can() {
    let server = Server::start();
    let Some((node, shown)) = with_server(&server) else { return };
    fs::remove_file(node.0.at(&shown)).unwrap();
    node.0.folder(&shown);
    let report = node.fetched();
    assert_eq!(report.status, ApplyStatus::Failed);
    let why = report.error.clone().unwrap();
    assert!(why.starts_with("the SSH server does not show the node's own key yet: "), "{why}");
    assert_eq!(of(&report.resources, "keys", "host key").detail.as_deref(), Some(why.as_str()));
    {
        let site = server.site();
        assert_eq!(site.results.last().unwrap().report, report);
        assert_eq!(site.tellers.last().unwrap().settled, "false");
    }
    fs::remove_dir(node.0.at(&shown)).unwrap();
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    assert_eq!(server.site().tellers.last().unwrap().settled, "true");
}

#[test]
fn a_node_with_very_many_secrets_is_served_all_the_same() {
    let secrets = (0..600).map(|n| secret(&format!("s{n}"), &format!("/run/secrets/{n}")));
    let mut site = Site::of(secrets.collect());
    let server = server_with(&site);
    let node = Node::of(&server);
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    site.set("s7", "another");
    server.site().change_to(&site);
    assert_eq!(node.fetched().status, ApplyStatus::Complete);
    assert_eq!(node.0.read("/run/secrets/7"), "another");
    let site = server.site();
    assert_eq!(site.presences[1].holds.split(',').count(), 600);
    assert!(site.longest_head < 16 << 10, "the server reads no longer head: {}", site.longest_head);
}

#[test]
fn nothing_that_a_node_says_or_sends_holds_a_value() {
    let server = server_with(&Site::with_one());
    let node = Node::of(&server);
    let first = node.fetch();
    fs::write(node.0.at("/run/secrets/db"), "drifted").unwrap();
    let second = node.fetch();
    for output in [first, second] {
        let all = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8(all).unwrap().contains(MARKER));
    }
    let site = server.site();
    let told = format!("{:?} {:?}", site.results, site.progress);
    assert!(told.contains("its value differs") && !told.contains(MARKER), "{told}");
    assert_eq!(node.0.files_with(MARKER), ["/run/secrets/db"]);
}
