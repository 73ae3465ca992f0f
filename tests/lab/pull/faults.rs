//! What goes wrong between nodes and their server, each with what comes of it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::{CREATE, DESTROY, NEEDS, STATUS, kept, lab, motd, serve};
use crate::common::{
    Lab, all_processes, assert_nothing_is_left, command_of, is_alive, kill, lacks, spec, wait_until,
};

/// The process of a node that fetches.
fn keeper(lab: &Lab, machine: &str) -> Option<i32> {
    let parent = format!("PPid:\t{}", lab.init(machine).unwrap());
    all_processes().into_iter().find(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line == parent) && command_of(*pid).contains("run")
    })
}

/// What the server has counted.
fn metric(lab: &Lab, name: &str) -> u64 {
    let socket = lab.state.join("server/lab/operator.sock");
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: orch\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
}

fn end(lab: &Lab) {
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(lab);
}

#[test]
fn a_server_that_is_killed_and_started_again_finds_its_nodes_without_help() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    let server = serve(&lab);
    lab.orch(CREATE).ends_with(0);
    server.signal(Signal::KILL);
    drop(server);
    lab.write("specs/plain.yaml", &spec("while nobody served"));
    let server = serve(&lab);
    wait_until("the node came by itself", || motd(&lab, "lab-a") == "while nobody served");
    wait_until("it has reported", || lab.orch(STATUS).code == 0);
    drop(server);
    end(&lab);
}

#[test]
fn what_fetches_is_started_again_where_it_is_killed_and_never_leaves_half_a_file() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    let server = serve(&lab);
    lab.orch(CREATE).ends_with(0);
    for round in 0..6 {
        let text = format!("round {round}");
        lab.write("specs/plain.yaml", &spec(&text));
        std::thread::sleep(std::time::Duration::from_millis(15 * round));
        if let Some(pid) = keeper(&lab, "lab-a") {
            kill(pid, Signal::KILL);
            wait_until("it is dead", || !is_alive(pid));
        }
        let complete = fs::read(lab.root("lab-a").join("var/lib/orch/complete.json")).unwrap_or_default();
        assert!(complete.is_empty() || serde_json::from_slice::<serde_json::Value>(&complete).is_ok());
        wait_until("it goes on where it was", || motd(&lab, "lab-a") == text);
    }
    drop(server);
    end(&lab);
}

#[test]
fn another_certificate_is_refused_and_a_run_mends_it() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    lab.orch(CREATE).ends_with(0);
    // Another server in the place of ours, as far as the node can tell.
    fs::remove_file(lab.state.join("server/lab/certificates.json")).unwrap();
    lab.write("specs/plain.yaml", &spec("from another"));
    let server = serve(&lab);
    kill(keeper(&lab, "lab-a").unwrap(), Signal::HUP);
    wait_until("the node has come", || metric(&lab, "orch_server_handshakes_failed_total") > 0);
    assert!(!server.said().contains("200 to 10."), "{}", server.said());
    assert_eq!(motd(&lab, "lab-a"), "as wanted", "nothing of it is taken");
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    assert_eq!(motd(&lab, "lab-a"), "from another");
    drop(server);
    end(&lab);
}

#[test]
fn a_token_that_was_copied_and_used_is_an_alarm_until_the_node_is_enrolled_anew() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    let server = serve(&lab);
    lab.orch(CREATE).ends_with(0);
    let state = lab.root("lab-a").join("var/lib/orch");
    let copied = fs::read(state.join("pull.json")).unwrap();
    lab.write("specs/plain.yaml", &spec("edited"));
    wait_until("the node went on", || motd(&lab, "lab-a") == "edited");
    wait_until("it has reported", || lab.orch(STATUS).code == 0);
    // Whoever has a copy goes back to what it was.
    fs::write(state.join("pull.json"), copied).unwrap();
    kill(keeper(&lab, "lab-a").unwrap(), Signal::HUP);
    wait_until("the server has seen it", || lab.orch(STATUS).code == 2);
    lab.orch(STATUS).every_node_is("alarmed");
    lab.orch("status -M lab -H father --mode pull")
        .says("somebody else may have it")
        .says("orch token revoke");
    lab.orch("token list").ends_with(0).says("ALARM");
    lab.write("specs/plain.yaml", &spec("enrolled anew"));
    lab.orch("config -M lab -H father --mode pull --json").ends_with(0).every_node_is("changed");
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    drop(server);
    end(&lab);
}

#[test]
fn a_node_whose_spec_cannot_be_made_true_says_so_itself_and_is_mended_by_an_edit() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    let wrong = spec("as wanted").replace("files: [", "files: [{ path: /etc/ssh, content: x }, ");
    lab.write("specs/plain.yaml", &wrong);
    let failed = lab.orch(CREATE).ends_with(1).every_node_is("failed").says("/etc/ssh");
    assert!(failed.node("a")["hint"].is_string());
    assert_eq!(kept(&lab, "lab-a", "failed.json")["mode"], "pull");
    lab.write("specs/plain.yaml", &spec("mended"));
    lab.orch(CREATE).ends_with(0);
    assert_eq!(motd(&lab, "lab-a"), "mended");
    end(&lab);
}

#[test]
fn a_node_that_never_reports_costs_its_time_limit_and_the_others_nothing() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["mute", "other"]);
    lab.orch(CREATE).ends_with(0);
    let brief = "on_error: continue, timeouts: { create: 30s, boot: 20s, config: 4s, destroy: 20s }";
    let nodes = [crate::common::node("mute"), crate::common::node("other")];
    lab.write_nodes(brief, &[&nodes[0], &nodes[1]]);
    lab.write("specs/plain.yaml", &spec("edited"));
    let init = lab.init("lab-mute").unwrap();
    // Its work waits at the gate, and so nothing is reported, though everything in it runs.
    let running: Vec<i32> = keeper(&lab, "lab-mute").into_iter().chain([init]).collect();
    let gate = crate::common::Gate::hold(&lab, "lab-mute");
    let partly = lab.orch(CREATE).ends_with(2);
    assert_eq!(partly.node("mute")["timed_out"], true, "{:#}", partly.node("mute"));
    assert_eq!(motd(&lab, "lab-other"), "edited");
    drop(gate);
    assert!(running.iter().all(|pid| is_alive(*pid)));
    lab.orch(CREATE).ends_with(0);
    end(&lab);
}

#[test]
fn a_driver_that_is_killed_while_nodes_pull_is_healed_by_running_it_again() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_sample_site();
    let create = "create -M nested-test -H father --mode pull --json";
    for round in 0..8_u64 {
        let driver = lab.start(create);
        // From before anything was done until after everything was.
        std::thread::sleep(std::time::Duration::from_millis(60 * round));
        driver.signal(Signal::KILL);
        drop(driver);
        lab.orch(create).ends_with(0);
        lab.orch(create).ends_with(0).every_node_is("unchanged");
        lab.orch("status -M nested-test -H father --mode pull --json")
            .ends_with(0)
            .every_node_is("as-wanted");
        assert_eq!(lab.machines().len(), 2, "round {round}: no orphan and no double");
        lab.orch("destroy -M nested-test -H father --yes").ends_with(0);
        crate::common::assert_nothing_stays(&lab);
    }
}

#[test]
fn a_server_that_is_started_anew_while_a_run_waits_for_a_node_misleads_nobody() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = lab(&["a"]);
    let server = serve(&lab);
    lab.orch(CREATE).ends_with(0);
    fs::write(lab.root("lab-a").join("etc/motd"), "by hand").unwrap();
    let gate = crate::common::Gate::hold(&lab, "lab-a");
    let config = lab.start("config -M lab -H father --mode pull --json");
    wait_until("the node is at it", || gate.is_waited_at());
    server.signal(Signal::KILL);
    drop(server);
    // The run serves in its place where it notices first, and then the other one is not needed.
    let mut server = lab.start("serve --listen 127.0.0.1:0");
    wait_until("somebody serves", || server.said().contains("serving") || server.has_ended());
    if server.has_ended() {
        assert!(server.said().contains("another command serves this site"), "{}", server.said());
    }
    drop(gate);
    config.end().ends_with(0).every_node_is("changed");
    assert_eq!(motd(&lab, "lab-a"), "as wanted", "an old report is not taken for the new one");
    drop(server);
    end(&lab);
}
