//! Machines that stand in for NixOS hosts: reached at ports of loopback, known by their host keys, and given systems by drivers
//! that share nothing but them.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use super::scene::NixLab;
use crate::common::{Lab, ORCH, TIMEOUTS, node};

/// The program that a driver brings to a host: what is there already, since all of them are on this computer.
const PROGRAM: &str = "#!/bin/sh\nexec /run/orch/orch-node \"$@\"\n";

/// Machines, and the ports at which they are reached.
pub(super) struct Hosts {
    lab: Lab,
    pub(super) names: Vec<String>,
    ports: Vec<u16>,
}

/// Somebody who gives hosts their systems: a site, a state directory and a store of their own.
pub(super) struct Driver {
    pub(super) scene: NixLab,
    names: String,
}

impl Hosts {
    /// So many machines that run.
    pub(super) fn made(count: usize) -> Self {
        let names: Vec<String> = (1..=count).map(|number| format!("h{number}")).collect();
        let nodes: Vec<String> = names.iter().map(|name| node(name)).collect();
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let lab = Lab::with_nodes(TIMEOUTS, &nodes);
        lab.orch("create -M lab -H father --json").ends_with(0);
        fs::write(lab.state.join("orch-node"), PROGRAM).unwrap();
        fs::set_permissions(lab.state.join("orch-node"), fs::Permissions::from_mode(0o755)).unwrap();
        let ports = names.iter().map(|name| listen_for(lab.machine(&format!("lab-{name}")))).collect();
        Self { lab, names, ports }
    }

    /// A driver that knows all of them.
    pub(super) fn driver(&self) -> Driver {
        let scene = NixLab::with_nodes("", &[], "");
        for (name, port) in self.names.iter().zip(&self.ports) {
            scene.lab.write(&format!("hosts/{name}.yaml"), &self.file(name, *port));
            let module = "{ ... }: { imports = [ ../../modules/web ]; }\n";
            scene.lab.write(&format!("hosts/{name}/default.nix"), module);
        }
        Driver { scene, names: self.names.join(",") }
    }

    /// What a site says of one.
    fn file(&self, name: &str, port: u16) -> String {
        let record = fs::read(self.lab.machine(&format!("lab-{name}")).join("machine.json")).unwrap();
        let record: Json = serde_json::from_slice(&record).unwrap();
        let known = record["keys"]["host_key"].as_str().or(record["host_key"].as_str()).unwrap();
        let (user, identity) = (record["user"].as_str().unwrap(), self.lab.state.join("keys/driver_ed25519"));
        format!(
            "provider: local\nimages: {{ \"*\": this-machine }}\nssh:\n  address: 127.0.0.1\n  port: {port}\n  user: {user}\n  \
             host_keys: [\"{known}\"]\n  identity: {}\n",
            identity.display()
        )
    }

    /// The program that is brought to them.
    fn program(&self) -> PathBuf {
        self.lab.state.join("orch-node")
    }

    /// The root of one, seen from outside.
    pub(super) fn root(&self, name: &str) -> PathBuf {
        self.lab.root(&format!("lab-{name}"))
    }

    /// What each runs and boots, as their links say it.
    pub(super) fn stands(&self) -> Vec<(Option<PathBuf>, Option<PathBuf>)> {
        self.names.iter().map(|name| stand(&self.root(name))).collect()
    }

    /// Has the leases of a driver that was killed end, as they do by themselves after a minute.
    pub(super) fn let_leases_end(&self) {
        for name in &self.names {
            let _ = fs::remove_file(self.root(name).join("run/orch-rollout/lease.json"));
        }
    }
}

impl Driver {
    /// A rollout to all of them, about to be run.
    pub(super) fn rollout(&self, hosts: &Hosts) -> (Command, String) {
        let words = format!("rollout -H {} --json", self.names);
        let mut command = self.scene.command(&words);
        command.env("ORCH_NODE", hosts.program());
        (command, words)
    }
}

/// What a machine runs and boots.
fn stand(root: &Path) -> (Option<PathBuf>, Option<PathBuf>) {
    let profiles = root.join("nix/var/nix/profiles");
    let generation = fs::read_link(profiles.join("system")).ok();
    let boots = generation.and_then(|name| fs::read_link(profiles.join(name)).ok());
    (fs::read_link(root.join("run/current-system")).ok(), boots)
}

/// Listens at a port of loopback, and has each connection lead to the SSH server of a machine.
fn listen_for(machine: PathBuf) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut connect = Command::new(ORCH);
            connect.args(["__local", "connect"]).arg(&machine).arg("22").stderr(Stdio::null());
            connect.stdin(OwnedFd::from(stream.try_clone().unwrap())).stdout(OwnedFd::from(stream));
            if let Ok(mut child) = connect.spawn() {
                std::thread::spawn(move || child.wait());
            }
        }
    });
    port
}
