//! What goes wrong while nodes are worked on or idle, each with what comes of it.

mod config;
mod disk;
mod drivers;
mod health;
mod interrupt;
mod lies;
mod link;
mod power;
mod server;
mod strangers;

use std::fs;

use rustix::process::Signal;

use crate::common::{
    Gate, Lab, Need, Running, TIMEOUTS, all_processes, is_alive, kill, node, spec, wait_until,
};

/// Faults are made from outside, as root.
const NEEDS: [Need; 2] = [Need::Root, Need::Ssh];

const CREATE: &str = "create -M lab -H father --json";
const STATUS: &str = "status -M lab -H father --json";
const DESTROY: &str = "destroy -M lab -H father --yes --json";

/// A lab whose nodes of these names are made and configured.
fn made(nodes: &[&str]) -> Lab {
    let nodes: Vec<String> = nodes.iter().map(|name| node(name)).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let lab = Lab::with_nodes(TIMEOUTS, &nodes);
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    lab
}

/// Has every node be configured anew by the next run.
fn edit(lab: &Lab) {
    lab.write("specs/plain.yaml", &spec("as wanted now"));
}

/// What a node says of itself to whoever comes in: the file that the spec has.
fn motd(lab: &Lab, machine: &str) -> String {
    fs::read_to_string(lab.root(machine).join("etc/motd")).unwrap()
}

/// Cuts the power of a machine: its first process is killed, and with it everything in it.
fn cut_power(lab: &Lab, machine: &str) {
    let init = lab.init(machine).unwrap();
    kill(init, Signal::KILL);
    wait_until("the machine is off", || !is_alive(init));
}

/// Starts a create and comes back when it waits at a gate.
fn start_configuring(lab: &Lab, gate: &Gate) -> Running {
    let create = lab.start(CREATE);
    wait_until("a node is being configured", || gate.is_waited_at());
    create
}

/// The SSH server of a machine, as it is seen from outside: the one that its first process started.
fn server(lab: &Lab, machine: &str) -> Option<i32> {
    let parent = format!("PPid:\t{}", lab.init(machine).unwrap());
    all_processes().into_iter().find(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.starts_with("Name:\tsshd\n") && status.lines().any(|line| line == parent)
    })
}
