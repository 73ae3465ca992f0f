//! A server that stays, and nodes that keep themselves as it says.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::{CREATE, DESTROY, NEEDS, PULL, STATUS, kept, lab, motd, serve};
use crate::common::{Lab, ORCH, Running, assert_nothing_is_left, lacks, node, spec, wait_until};

#[test]
fn fifty_nodes_take_over_an_edit_by_themselves_with_one_apply_each_and_status_follows() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_nodes(&format!("parallelism: 50, {PULL}"), &[&format!("{}, count: 50", node("n"))]);
    let server = serve(&lab);
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    lab.write("specs/plain.yaml", &spec("edited"));
    let machines: Vec<String> = (1..=50).map(|number| format!("lab-n-{number}")).collect();
    let has_it = |machine: &String| {
        motd(&lab, machine) == "edited" && kept(&lab, machine, "complete.json")["status"] == "complete"
    };
    wait_until("every node has taken it over", || machines.iter().all(has_it));
    let status = lab.orch(STATUS).ends_with(0).every_node_is("as-wanted").json();
    for machine in &machines {
        let complete = kept(&lab, machine, "complete.json");
        assert_eq!(complete["attempts"], 1, "{machine}: {complete:#}");
    }
    let digest = |node: &serde_json::Value| node["pull"]["reported"]["report"]["spec_digest"].clone();
    let wanted = |node: &serde_json::Value| node["pull"]["wanted"].clone();
    assert!(status["nodes"].as_array().unwrap().iter().all(|node| digest(node) == wanted(node)));
    lab.orch(CREATE).ends_with(0).every_node_is("unchanged");
    lab.orch(DESTROY).ends_with(0);
    server.signal(Signal::TERM);
    server.end().ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn drift_on_a_node_that_is_told_to_converge_is_mended_and_told() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    lab.orch(CREATE).ends_with(0);
    std::fs::write(lab.root("lab-a").join("etc/motd"), "by hand").unwrap();
    lab.orch(STATUS).ends_with(2).every_node_is("drifted");
    lab.orch("config -M lab -H father --mode hybrid --json").ends_with(0).every_node_is("changed");
    assert_eq!(motd(&lab, "lab-a"), "as wanted");
    let record = lab.orch(STATUS).ends_with(0).node("a");
    let drift = &record["pull"]["reported"]["drift"][0];
    assert_eq!((&drift["kind"], &drift["name"]), (&"file".into(), &"/etc/motd".into()), "{record:#}");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn a_node_that_was_pushed_pulls_from_then_on_and_the_other_way_round() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    lab.orch("create -M lab -H father --mode push --json").ends_with(0);
    lab.write("specs/plain.yaml", &spec("pulled"));
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    assert_eq!(
        (motd(&lab, "lab-a").as_str(), &kept(&lab, "lab-a", "complete.json")["mode"]),
        ("pulled", &"pull".into())
    );
    lab.write("specs/plain.yaml", &spec("pushed"));
    lab.orch("create -M lab -H father --mode push --json").ends_with(0).every_node_is("changed");
    assert_eq!(
        (motd(&lab, "lab-a").as_str(), &kept(&lab, "lab-a", "complete.json")["mode"]),
        ("pushed", &"push".into())
    );
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn two_runs_at_once_share_one_server_and_the_second_goes_on_when_the_first_has_ended() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    lab.write("hosts/mother.yaml", "provider: local\nimages: { \"*\": this-machine }\n");
    let first = lab.start(CREATE);
    let second = lab.start("create -M lab -H mother --mode pull --json");
    first.end().ends_with(0).every_node_is("changed");
    second.end().ends_with(0).every_node_is("changed");
    lab.orch(DESTROY).ends_with(0);
    lab.orch("destroy -M lab -H mother --yes").ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn a_server_under_systemd_says_when_it_is_ready_and_serves_on_the_socket_that_it_is_given() {
    let lab = lab(&["a"]);
    let folder = tempfile::tempdir().unwrap();
    let notified = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    notified.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 0</dev/null"]).arg(ORCH);
    command.arg("--site").arg(&lab.site).arg("--state").arg(&lab.state).arg("serve");
    command.env("NOTIFY_SOCKET", folder.path().join("notify")).stdin(OwnedFd::from(listener));
    let server = Running::start(&mut command, "serve");
    let mut word = [0; 256];
    let length = notified.recv(&mut word).unwrap();
    assert!(word[..length].starts_with(b"READY=1"), "{:?}", String::from_utf8_lossy(&word[..length]));
    TcpStream::connect(address).unwrap();
    assert!(!server.said().contains("44443"), "nothing else is listened at: {}", server.said());
    server.signal(Signal::TERM);
    server.end().ends_with(0);
}

#[test]
fn keys_and_certificates_are_replaced_under_running_nodes_that_notice_nothing() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    let server = serve(&lab);
    lab.orch(CREATE).ends_with(0);
    for (round, words) in ["token rotate", "serve --rotate-cert"].into_iter().enumerate() {
        // The server takes it over at once, and what is minted from now on is believed.
        lab.orch(words).ends_with(0);
        server.signal(Signal::HUP);
        wait_until("everything was read anew", || server.said().matches("read anew").count() > round);
        let text = format!("after {words}");
        lab.write("specs/plain.yaml", &spec(&text));
        wait_until("the node goes on", || motd(&lab, "lab-a") == text);
    }
    lab.write("specs/plain.yaml", "schema_version: 1\nfiles: [{ path: nowhere }]\n");
    server.signal(Signal::HUP);
    wait_until("what makes no sense is told", || server.said().contains("everything stays as it was"));
    lab.write("specs/plain.yaml", &spec("mended"));
    wait_until("the node goes on", || motd(&lab, "lab-a") == "mended");
    lab.orch(DESTROY).ends_with(0);
    drop(server);
    assert_nothing_is_left(&lab);
}

#[test]
fn a_key_that_was_replaced_without_a_word_to_the_server_enrols_nodes_all_the_same() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    let server = serve(&lab);
    lab.orch("token rotate").ends_with(0);
    lab.orch("serve --rotate-cert").ends_with(0);
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    lab.orch(DESTROY).ends_with(0);
    drop(server);
    assert_nothing_is_left(&lab);
}

#[test]
fn nodes_that_were_destroyed_at_once_without_a_server_have_no_good_token_left() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_nodes(PULL, &[&format!("{}, count: 6", node("n"))]);
    lab.orch(CREATE).ends_with(0);
    let machines: Vec<String> = (1..=6).map(|number| format!("lab-n-{number}")).collect();
    let copied: Vec<_> = machines.iter().map(|machine| kept(&lab, machine, "pull.json")).collect();
    lab.orch(DESTROY).ends_with(0).never_says("could not be revoked");
    for memory in copied {
        let path = lab.site.join("copied");
        std::fs::write(&path, memory["tokens"]["spec"].as_str().unwrap()).unwrap();
        lab.orch(&format!("token inspect {}", path.display())).ends_with(1).says("E302");
    }
    assert_nothing_is_left(&lab);
}

#[test]
fn a_hybrid_node_is_made_told_and_waited_for() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    lab.orch("create -M lab -H father --mode hybrid --json").ends_with(0).every_node_is("changed");
    assert_eq!(kept(&lab, "lab-a", "complete.json")["mode"], "hybrid");
    lab.write("specs/plain.yaml", &spec("again"));
    lab.orch("create -M lab -H father --mode hybrid --json").ends_with(0).every_node_is("changed");
    assert_eq!(motd(&lab, "lab-a"), "again");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}
