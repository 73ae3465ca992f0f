//! Somebody who does things by hand at the API of a host, past `orch`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use orch_lab::{HostKind, LabFileHost};
use orch_model::Trust;
use orch_providers::api::{Client, ClientSettings, Method, Question, Tcp, Trusting, encode, form};
use serde_json::Value as Json;
use tokio::runtime::Runtime;

use crate::common::wait_until;

/// Somebody with the token of a host.
pub(crate) struct People {
    kind: HostKind,
    /// Proxmox: the name of its node.
    node: String,
    client: Client,
    runtime: Runtime,
}

/// A machine, as the API of its host shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The mark that tells whose it is, where it bears one.
    pub(crate) uuid: Option<String>,
}

impl People {
    pub(crate) fn at(host: &LabFileHost) -> Self {
        let (scheme, base) = match host.kind {
            HostKind::Proxmox => ("PVEAPIToken=", "/api2/json"),
            HostKind::Hetzner => ("Bearer ", "/v1"),
        };
        let opened = format!("{scheme}{}", host.token.expose());
        let (at, port) = host.endpoint.trim_start_matches("https://").rsplit_once(':').unwrap();
        let trust = Trust::Fingerprint(host.fingerprint.parse().unwrap());
        let settings = ClientSettings {
            endpoint: format!("{}{base}", host.endpoint),
            dial: Arc::new(Tcp { host: at.into(), port: port.parse().unwrap() }),
            tls: Trusting::config(&trust, Path::new(".")).unwrap(),
            opener: Arc::new(move || Ok(opened.clone().into())),
            lanes: 4,
            limit: Duration::from_secs(20),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let node = host.node.clone().unwrap_or_default();
        Self { kind: host.kind, node, client: Client::new(settings).unwrap(), runtime }
    }

    /// Asks, and has the status and the body of the answer.
    pub(crate) fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> (u16, Json) {
        let body = body.map(|(kind, bytes)| (kind, bytes.into()));
        let question = Question { method, path: path.to_owned(), body, limit: None };
        let reply = self.runtime.block_on(self.client.ask(&question)).unwrap();
        (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
    }

    /// What is at a path.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Json {
        let (status, answer) = self.ask(Method::Get, path, None);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Makes or changes something at Hetzner Cloud.
    #[track_caller]
    pub(crate) fn send(&self, method: Method, path: &str, body: &Json) -> Json {
        let (status, answer) =
            self.ask(method, path, Some(("application/json", body.to_string().into_bytes())));
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        answer
    }

    /// Makes or changes something at Proxmox VE, and waits for the task where it is one.
    #[track_caller]
    pub(crate) fn fill(&self, method: Method, path: &str, pairs: &[(&str, &str)]) {
        let body = ("application/x-www-form-urlencoded", form(pairs.iter().copied()).into_bytes());
        let (status, answer) = self.ask(method, &self.on_node(path), Some(body));
        assert_eq!(status, 200, "{path}: {answer}");
        let Some(task) = answer["data"].as_str().filter(|data| data.starts_with("UPID")) else { return };
        let task = self.on_node(&format!("/tasks/{}/status", encode(task)));
        wait_until("the task ends", || self.get(&task)["data"]["status"] == "stopped");
        assert_eq!(self.get(&task)["data"]["exitstatus"], "OK", "{path}");
    }

    /// A path below the node of a Proxmox VE.
    pub(crate) fn on_node(&self, path: &str) -> String {
        format!("/nodes/{}{path}", self.node)
    }

    /// Every machine of the host, by name.
    pub(crate) fn machines(&self) -> Vec<Shown> {
        let mut all: Vec<Shown> = match self.kind {
            HostKind::Proxmox => list(&self.get("/cluster/resources?type=vm")["data"], shown_by_proxmox),
            HostKind::Hetzner => list(&self.get("/servers")["servers"], shown_by_hetzner),
        };
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The one machine of this name.
    #[track_caller]
    pub(crate) fn machine(&self, name: &str) -> Shown {
        let mut all = self.machines();
        all.retain(|machine| machine.name == name);
        assert_eq!(all.len(), 1, "there is one `{name}`: {all:?}");
        all.remove(0)
    }

    /// Everything that the API says of a machine which does not change by itself.
    pub(crate) fn config(&self, id: &str) -> Json {
        match self.kind {
            HostKind::Proxmox => self.get(&self.on_node(&format!("/{id}/config")))["data"].clone(),
            HostKind::Hetzner => self.get(&format!("/servers/{id}"))["server"].clone(),
        }
    }

    /// Whether a machine runs.
    pub(crate) fn runs(&self, id: &str) -> bool {
        match self.kind {
            HostKind::Proxmox => {
                self.get(&self.on_node(&format!("/{id}/status/current")))["data"]["status"] == "running"
            }
            HostKind::Hetzner => self.config(id)["status"] == "running",
        }
    }

    /// Switches a machine off.
    pub(crate) fn switch_off(&self, id: &str) {
        match self.kind {
            HostKind::Proxmox => self.fill(Method::Post, &format!("/{id}/status/stop"), &[]),
            HostKind::Hetzner => {
                drop(self.send(Method::Post, &format!("/servers/{id}/actions/poweroff"), &Json::Null));
            }
        }
        wait_until("it is off", || !self.runs(id));
    }

    /// Puts a machine there that is nobody's, by this name and, where machines have numbers, this number.
    pub(crate) fn put_stranger(&self, name: &str, vmid: &str) {
        match self.kind {
            HostKind::Proxmox => {
                let pairs = [("vmid", vmid), ("name", name), ("memory", "512"), ("scsi0", "local-zfs:2")];
                self.fill(Method::Post, "/qemu", &pairs);
            }
            HostKind::Hetzner => {
                let body = serde_json::json!({
                    "name": name, "server_type": "cx22", "image": "debian-13", "location": "nbg1",
                });
                let id = self.send(Method::Post, "/servers", &body)["server"]["id"].to_string();
                wait_until("the stranger runs", || self.runs(&id));
            }
        }
    }

    /// Writes another mark on a machine.
    pub(crate) fn alter_mark(&self, machine: &Shown, uuid: &str) {
        let config = self.config(&machine.id);
        match self.kind {
            HostKind::Proxmox => {
                let old = machine.uuid.as_ref().unwrap();
                let (tags, said) = (config["tags"].as_str().unwrap(), config["description"].as_str());
                let tags = tags.replace(old.as_str(), uuid);
                let said = said.unwrap_or_default().replace(old.as_str(), uuid);
                let pairs = [("tags", tags.as_str()), ("description", said.as_str())];
                self.fill(Method::Put, &format!("/{}/config", machine.id), &pairs);
            }
            HostKind::Hetzner => {
                let mut labels = config["labels"].clone();
                labels["orch-uuid"] = uuid.into();
                let body = serde_json::json!({ "labels": labels });
                drop(self.send(Method::Put, &format!("/servers/{}", machine.id), &body));
            }
        }
    }
}

fn list(answer: &Json, shown: impl Fn(&Json) -> Shown) -> Vec<Shown> {
    answer.as_array().unwrap().iter().map(shown).collect()
}

fn shown_by_proxmox(machine: &Json) -> Shown {
    let tags = machine["tags"].as_str().unwrap_or_default();
    let uuid = tags.split(';').find_map(|tag| tag.strip_prefix("orch-uuid.")).map(str::to_owned);
    let text = |name: &str| machine[name].as_str().unwrap_or_default().to_owned();
    Shown { id: text("id"), name: text("name"), uuid }
}

fn shown_by_hetzner(machine: &Json) -> Shown {
    let uuid = machine["labels"]["orch-uuid"].as_str().map(str::to_owned);
    Shown { id: machine["id"].to_string(), name: machine["name"].as_str().unwrap().to_owned(), uuid }
}
