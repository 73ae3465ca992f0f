//! An SSH server that takes connections and never answers.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{CREATE, NEEDS, STATUS, edit, motd, server};
use crate::common::{Lab, kill, lacks, node};

const BRIEF: &str = "on_error: continue, timeouts: { create: 30s, boot: 3s, config: 5s, destroy: 20s }";

#[test]
fn a_server_that_never_answers_costs_its_node_the_time_limit_and_the_others_nothing() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_nodes(BRIEF, &[&node("mute"), &node("other")]);
    lab.orch(CREATE).ends_with(0);
    let server = server(&lab, "lab-mute").expect("the node has a server");
    kill(server, Signal::STOP);
    // What cannot be asked is not known to be as wanted.
    let config = lab.orch("config -M lab -H father --json").ends_with(2);
    assert_eq!(
        (&config.node("mute")["status"], &config.node("other")["status"]),
        (&"failed".into(), &"unchanged".into())
    );
    edit(&lab);

    let began = Instant::now();
    let partly = lab.orch(CREATE).ends_with(2);
    let took = began.elapsed();
    let mute = partly.node("mute");
    assert_eq!((&mute["status"], &mute["timed_out"]), (&"failed".into(), &true.into()), "{mute:#}");
    let other = partly.node("other");
    let step = &other["steps"][0];
    let ended = step["started"].as_f64().unwrap() + step["seconds"].as_f64().unwrap();
    assert!(ended < 5.0, "the other did not wait for it: {other:#}");
    assert_eq!(motd(&lab, "lab-other"), "as wanted now");
    assert!(took < Duration::from_secs(15), "the limit holds: {took:?}");
    lab.orch(&format!("{CREATE} --only mute")).ends_with(4);
    let status = lab.orch(STATUS).ends_with(2);
    assert_eq!(status.node("mute")["condition"], "unreachable");

    kill(server, Signal::CONT);
    lab.orch(CREATE).ends_with(0);
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
}
