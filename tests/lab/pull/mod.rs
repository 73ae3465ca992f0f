//! Nodes that fetch their configuration: the system tests ST-1, ST-5 and ST-8, those of two and three levels again, a server
//! that stays, and what goes wrong with it.

mod faults;
mod serving;
mod systems;

use std::fs;

use serde_json::Value as Json;

use crate::common::{Lab, Need, Running, node, wait_until};

/// Everything that these look at from outside is root's.
const NEEDS: [Need; 1] = [Need::Root];

/// Limits that a test can wait for, and nodes that pull.
const PULL: &str = "timeouts: { create: 30s, boot: 20s, config: 20s, destroy: 20s }";
const CREATE: &str = "create -M lab -H father --mode pull --json";
const STATUS: &str = "status -M lab -H father --mode pull --json";
const DESTROY: &str = "destroy -M lab -H father --yes --json";

/// A lab whose nodes of these names are to pull.
fn lab(nodes: &[&str]) -> Lab {
    let nodes: Vec<String> = nodes.iter().map(|name| node(name)).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    Lab::with_nodes(PULL, &nodes)
}

/// A server that stays, once it listens.
fn serve(lab: &Lab) -> Running {
    let server = lab.start("serve --listen 127.0.0.1:0");
    wait_until("the server serves", || server.said().contains("serving"));
    server
}

/// A file that a node keeps of orch.
fn kept(lab: &Lab, machine: &str, name: &str) -> Json {
    let text = fs::read(lab.root(machine).join("var/lib/orch").join(name)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// What a node says to whoever comes in.
fn motd(lab: &Lab, machine: &str) -> String {
    fs::read_to_string(lab.root(machine).join("etc/motd")).unwrap_or_default()
}
