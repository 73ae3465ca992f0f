//! A Proxmox VE on paper to ask things of, and what it tells its machines.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use orch_lab::{
    Answer, Api, Asked, Faults, FirstBoot, Machines, Paper, Power, Proxmox, ProxmoxSettings, ProxmoxTemplate,
    ProxmoxTimings, ProxmoxToken, Size, Trouble, Wanted,
};
use serde_json::Value as Json;

pub(crate) const TOKEN: &str = "PVEAPIToken=root@pam!lab=0123";

/// Machines on paper that remember what they were given.
#[derive(Default)]
pub(crate) struct Recorder {
    paper: Paper,
    pub(crate) given: Mutex<Vec<FirstBoot>>,
    pub(crate) made: Mutex<Vec<Wanted>>,
}

#[async_trait]
impl Machines for Recorder {
    async fn make(&self, wanted: &Wanted) -> Result<(), Trouble> {
        self.made.lock().unwrap().push(wanted.clone());
        self.paper.make(wanted).await
    }
    async fn start(&self, id: &str, first: &FirstBoot) -> Result<(), Trouble> {
        self.given.lock().unwrap().push(first.clone());
        self.paper.start(id, first).await
    }
    async fn stop(&self, id: &str) -> Result<(), Trouble> {
        self.paper.stop(id).await
    }
    async fn resize(&self, id: &str, size: Size) -> Result<(), Trouble> {
        self.paper.resize(id, size).await
    }
    async fn remove(&self, id: &str) -> Result<(), Trouble> {
        self.paper.remove(id).await
    }
    async fn power(&self, id: &str) -> Power {
        self.paper.power(id).await
    }
    async fn address(&self, id: &str) -> Option<IpAddr> {
        self.paper.address(id).await
    }
}

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) pve: Arc<Proxmox>,
    pub(crate) faults: Faults,
    pub(crate) machines: Arc<Recorder>,
    pub(crate) headers: BTreeMap<String, String>,
}

pub(crate) fn world() -> World {
    world_with(|_| {})
}

/// A world with one template, 9000, and a token of root.
pub(crate) fn world_with(change: impl FnOnce(&mut ProxmoxSettings)) -> World {
    let (faults, machines) = (Faults::default(), Arc::new(Recorder::default()));
    let mut settings =
        ProxmoxSettings::new("pve1", Arc::clone(&machines) as Arc<dyn Machines>, faults.clone());
    settings.timings = ProxmoxTimings::quick();
    settings.tokens = vec![ProxmoxToken::of_root("lab", "0123")];
    settings.templates = vec![ProxmoxTemplate::new(9000, "debian-13")];
    change(&mut settings);
    let pve = Arc::new(Proxmox::new(settings).unwrap());
    World { pve, faults, machines, headers: BTreeMap::from([("authorization".into(), TOKEN.into())]) }
}

pub(crate) fn encode(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

pub(crate) fn form(pairs: &[(&str, &str)]) -> String {
    pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect::<Vec<_>>()
        .join("&")
}

/// What was said: status, reason, body.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) body: Json,
}

impl From<Answer> for Said {
    fn from(answer: Answer) -> Self {
        let body = serde_json::from_slice(&answer.body).unwrap_or(Json::Null);
        Self { status: answer.status, reason: answer.reason.unwrap_or_default(), body }
    }
}

impl World {
    /// The same world, asked by somebody else.
    pub(crate) fn by(&self, name: &str, value: &str) -> Self {
        Self { headers: BTreeMap::from([(name.into(), value.into())]), ..self.clone() }
    }

    pub(crate) fn asked(&self, method: &str, path: &str, pairs: &[(&str, &str)]) -> Asked {
        let text = form(pairs);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let is_body = method == "POST" || method == "PUT";
        Asked {
            method: method.into(),
            path: format!("/api2/json{path}"),
            query: if is_body || text.is_empty() { query.into() } else { text.clone() },
            headers: self.headers.clone(),
            body: if is_body { text.into_bytes() } else { Vec::new() },
        }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, pairs: &[(&str, &str)]) -> Said {
        self.pve.answer(self.asked(method, path, pairs)).await.into()
    }

    /// The data of an answer that must be one.
    pub(crate) async fn data(&self, method: &str, path: &str, pairs: &[(&str, &str)]) -> Json {
        let said = self.ask(method, path, pairs).await;
        assert_eq!(said.status, 200, "{method} {path}: {said:?}");
        said.body["data"].clone()
    }

    pub(crate) async fn get(&self, path: &str) -> Json {
        self.data("GET", path, &[]).await
    }

    /// What the task of a call ended with.
    pub(crate) async fn task(&self, method: &str, path: &str, pairs: &[(&str, &str)]) -> String {
        let upid = self.data(method, path, pairs).await;
        self.end_of(upid.as_str().unwrap()).await
    }

    /// Waits for a task.
    pub(crate) async fn end_of(&self, upid: &str) -> String {
        let path = format!("/nodes/pve1/tasks/{upid}/status");
        let wait = async {
            loop {
                let status = self.get(&path).await;
                if status["status"] == "stopped" {
                    return status["exitstatus"].as_str().unwrap().to_owned();
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the task ends")
    }

    /// Makes a machine from the template.
    pub(crate) async fn copy(&self, vmid: u32, name: &str) {
        let pairs = [("newid", vmid.to_string()), ("name", name.to_owned())];
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(self.task("POST", "/nodes/pve1/qemu/9000/clone", &pairs).await, "OK");
    }

    pub(crate) async fn start(&self, vmid: u32) {
        assert_eq!(self.task("POST", &format!("/nodes/pve1/qemu/{vmid}/status/start"), &[]).await, "OK");
    }
}
