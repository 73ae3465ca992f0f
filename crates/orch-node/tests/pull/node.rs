//! A node that pulls, as a tree of files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Output, Stdio};

use orch_model::ApplyReport;
use orch_model::pull::Enrolment;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use crate::common::{Tree, report};
use crate::server::Server;

/// Times that a test has.
const QUICK: [&str; 4] = ["--tries-ms", "0,10,20,40,80", "--patience-ms", "50"];

pub(crate) struct Node(pub(crate) Tree);

impl Node {
    pub(crate) fn of(server: &Server) -> Self {
        let node = Self(Tree::new());
        node.enrol(&server.enrolment());
        node
    }

    pub(crate) fn enrol(&self, enrolment: &Enrolment) {
        self.0.folder("/var/lib/orch");
        fs::set_permissions(self.0.at("/var/lib/orch"), fs::Permissions::from_mode(0o700)).unwrap();
        let path = self.0.at("/var/lib/orch/enrolment.json");
        let _ = fs::remove_file(&path);
        fs::write(&path, serde_json::to_vec(enrolment).unwrap()).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap();
    }

    /// Fetches with quick tries.
    pub(crate) fn fetch(&self) -> Output {
        self.fetch_with(&[])
    }

    pub(crate) fn fetch_with(&self, more: &[&str]) -> Output {
        self.0.run(&[&["fetch"], more, &QUICK].concat(), &[])
    }

    pub(crate) fn fetched(&self) -> ApplyReport {
        report(&self.fetch())
    }

    /// Starts what stays.
    pub(crate) fn run(&self) -> Running {
        let mut command = self.0.command(&[&["run"][..], &QUICK].concat());
        Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.at("/var/lib/orch").join(name).exists()
    }

    pub(crate) fn kept(&self, name: &str) -> Json {
        serde_json::from_str(&self.0.read(&format!("/var/lib/orch/{name}"))).unwrap()
    }

    pub(crate) fn failure(&self) -> String {
        self.kept("failed.json")["error"].as_str().unwrap().to_owned()
    }
}

/// A process that is gone when this is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
