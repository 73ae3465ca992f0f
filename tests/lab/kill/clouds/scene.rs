//! A Proxmox VE and a project at Hetzner Cloud with a stranger in each, and a driver that can be killed at any question.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use orch_lab::{Api, ApiParts, Asked, HostKind, LabFile, LabHost, LabSettings};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value as Json;
use tokio::runtime::Runtime;

use super::snare::{Moment, Snare, Trap};
use crate::common::{Lab, ORCH, wait_until};

/// The files of the site, but for its presets.
const FILES: [(&str, &str); 4] = [
    ("site.yaml", "{ name: sweep, node_user: root, timezone: UTC }\n"),
    (
        "hosts/pve.yaml",
        "{ provider: proxmox, api_endpoint: 'https://pve.example:8006', api_token: secret:t, node: pve,\n  \
         datastore: local-zfs, bridge: vmbr0, images: { '*': 'local:import/debian-13.qcow2' } }\n",
    ),
    (
        "hosts/cloud.yaml",
        "{ provider: hetzner, token: secret:t, location: nbg1, fallback_locations: [fsn1], spread: true,\n  \
         server_types: { least: cx22, more: cx32 }, networks: [10.10.0.0/16], firewall: orch-base,\n  \
         images: { '*': debian-13 } }\n",
    ),
    ("manifests/pair.yaml", ""),
];
/// Everything that the account has for all machines together.
const SHARED: [&str; 3] = ["ssh_keys", "firewalls", "networks"];

/// The hosts of a site, and those who speak to them.
pub(super) struct Scene {
    pub(super) lab: Lab,
    pub(super) host: &'static str,
    pub(super) manifest: &'static str,
    pub(super) file: LabFile,
    pub(super) runtime: Runtime,
    apis: Arc<Mutex<BTreeMap<String, Arc<dyn Api>>>>,
    trap: Trap,
    _serving: orch_lab::Lab,
}

impl Scene {
    /// Two hosts on paper, on one of which the manifest `pair` is to be; each with a stranger.
    pub(super) fn on(host: &'static str) -> Self {
        let lab = Lab::with_site(&FILES);
        lab.write("presets/least.yaml", "{ cores: 2, memory: 4096, disk: 40 }\n");
        lab.write("presets/more.yaml", "{ cores: 4, memory: 8192, disk: 80 }\n");
        let mut hosts = [("pve", HostKind::Proxmox), ("cloud", HostKind::Hetzner)]
            .map(|(name, kind)| LabHost { port: 0, ..LabHost::new(name.parse().unwrap(), kind) });
        hosts[0].datastore = Some("local-zfs".into());
        hosts[0].volumes.insert("local:import/debian-13.qcow2".into());
        let scene = Self::with(lab, host, "pair", LabSettings { paper: true, ..quick(hosts.into()) });
        scene.want("least");
        scene.put_stranger();
        scene
    }

    /// The hosts of the sample site with real machines behind them, on one of which a manifest of it is to be.
    pub(super) fn real(host: &'static str, manifest: &'static str) -> Self {
        let lab = Lab::with_sample_site();
        let volume = |name: &str| format!("local:import/{name}.qcow2");
        let mother = LabHost {
            port: 0,
            node: Some("mother".into()),
            datastore: Some("local-zfs".into()),
            volumes: ["debian-12", "debian-13", "pve-9"].map(volume).into(),
            ..LabHost::new("mother".parse().unwrap(), HostKind::Proxmox)
        };
        let cloud = LabHost { port: 0, ..LabHost::new("cloud".parse().unwrap(), HostKind::Hetzner) };
        Self::with(lab, host, manifest, quick(vec![mother, cloud]))
    }

    fn with(lab: Lab, host: &'static str, manifest: &'static str, settings: LabSettings) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        let settings = LabSettings { folder: lab.state.join("lab"), ..settings };
        let (trap, apis) = (Trap::default(), Arc::new(Mutex::new(BTreeMap::new())));
        let (set, known) = (trap.clone(), Arc::clone(&apis));
        let make = move |parts: ApiParts| {
            let name = parts.host.name.to_string();
            let api = orch_lab::api(parts)?;
            known.lock().unwrap().insert(name, Arc::clone(&api));
            Ok(Arc::new(Snare { api, trap: set.clone() }) as Arc<dyn Api>)
        };
        let serving = runtime.block_on(orch_lab::Lab::begin(&settings, &make)).unwrap();
        Self { lab, host, manifest, file: serving.file().clone(), runtime, apis, trap, _serving: serving }
    }

    /// Has the manifest ask for two machines of this size.
    pub(super) fn want(&self, preset: &str) {
        let manifest = format!(
            "{{ schema_version: 2, name: pair, settings: {{ verify_ssh: false }},\n  nodes: [{{ name: a, count: 2, \
             type: vm, preset: {preset}, image: debian-13 }}] }}\n"
        );
        self.lab.write("manifests/pair.yaml", &manifest);
    }

    pub(super) fn words(&self, verb: &str) -> String {
        let yes = if verb == "destroy" { "--yes" } else { "" };
        format!("--lab {verb} -M {} -H {} {yes}", self.manifest, self.host)
    }

    /// Runs a verb and has its driver killed; whether it was.
    pub(super) fn kill(&self, verb: &str, at: (usize, Moment)) -> bool {
        let mut command = self.lab.command(&self.words(verb));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (mut driver, pid) = self.trap.set(Some(at), || {
            let driver = command.spawn().unwrap();
            let pid = Pid::from_child(&driver);
            ((driver, pid), pid)
        });
        wait_until("the driver has ended", || has_ended(pid));
        self.trap.disarm();
        let status = driver.wait().unwrap();
        assert!(status.signal() == Some(9) || status.success(), "{verb} at {at:?}: {status}");
        !status.success()
    }

    /// Runs a verb to its end, which must be a good one; how many questions it asked.
    #[track_caller]
    pub(super) fn heal(&self, verb: &str) -> usize {
        let before = self.trap.asked();
        self.lab.orch(&self.words(verb)).ends_with(0);
        self.trap.asked() - before
    }

    /// Asks the API of a host itself, past the wire and the trap.
    pub(super) fn ask(&self, method: &str, path: &str, body: &str) -> Json {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let token = self.file.hosts[self.host].token.expose();
        let (base, scheme, kind) = match self.file.hosts[self.host].kind {
            HostKind::Proxmox => ("/api2/json", "PVEAPIToken=", "application/x-www-form-urlencoded"),
            HostKind::Hetzner => ("/v1", "Bearer ", "application/json"),
        };
        let headers = [("authorization", format!("{scheme}{token}")), ("content-type", kind.to_owned())];
        let asked = Asked {
            method: method.into(),
            path: format!("{base}{path}"),
            query: query.into(),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
            body: body.into(),
        };
        let api = Arc::clone(&self.apis.lock().unwrap()[self.host]);
        let answer = self.runtime.block_on(api.answer(asked));
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.status);
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    fn put_stranger(&self) {
        if self.host == "pve" {
            let words = "vmid=10500&name=stranger&memory=512&scsi0=local-zfs:2";
            self.ask("POST", "/nodes/pve/qemu", words);
            wait_until("the stranger is there", || self.stranger().get("lock").is_none());
        } else {
            let body = r#"{ "name": "stranger", "server_type": "cx22", "image": "debian-13" }"#;
            self.ask("POST", "/servers", body);
            wait_until("the stranger runs", || self.stranger()["status"] == "running");
        }
    }

    /// Everything that is shown of the stranger.
    pub(super) fn stranger(&self) -> Json {
        if self.host == "pve" {
            self.ask("GET", "/nodes/pve/qemu/10500/config", "")["data"].clone()
        } else {
            self.ask("GET", "/servers?name=stranger", "")["servers"][0].clone()
        }
    }

    /// Everything of the host that is not the stranger's, nor there for all machines together.
    pub(super) fn things(&self) -> Things {
        match &self.file.hosts[self.host].node {
            Some(node) => self.things_of_proxmox(node),
            None => self.things_of_hetzner(),
        }
    }

    fn things_of_proxmox(&self, node: &str) -> Things {
        let list = |path: &str| self.ask("GET", path, "")["data"].as_array().unwrap().clone();
        let mut things = Things::default();
        for guest in list("/cluster/resources?type=vm") {
            let vmid = guest["vmid"].as_u64().unwrap();
            if vmid == 10_500 {
                continue;
            }
            let config = self.ask("GET", &format!("/nodes/{node}/qemu/{vmid}/config"), "")["data"].clone();
            let tags = config["tags"].as_str().unwrap_or_default().to_owned();
            let mark = tags.split(';').find_map(|tag| tag.strip_prefix("orch-uuid."));
            things.machines.push(Machine {
                name: config["name"].as_str().unwrap_or_default().to_owned(),
                mark: mark.unwrap_or_default().to_owned(),
                id: vmid.to_string(),
                runs: guest["status"] == "running",
            });
        }
        for storage in ["local", "local-zfs"] {
            let volumes = list(&format!("/nodes/{node}/storage/{storage}/content"));
            let names = volumes.iter().map(|volume| volume["volid"].as_str().unwrap().to_owned());
            let is_it = |name: &String| !name.contains("-10500-") && !name.contains(":import/");
            things.beside.extend(names.filter(is_it));
        }
        things
    }

    fn things_of_hetzner(&self) -> Things {
        let list = |what: &str| {
            let answer = self.ask("GET", &format!("/{what}?per_page=50"), "");
            answer[what].as_array().unwrap().clone()
        };
        let mut things = Things::default();
        for server in list("servers").into_iter().filter(|server| server["name"] != "stranger") {
            things.machines.push(Machine {
                name: server["name"].as_str().unwrap().to_owned(),
                mark: server["labels"]["orch-uuid"].as_str().unwrap_or_default().to_owned(),
                id: server["id"].to_string(),
                runs: server["status"] == "running",
            });
        }
        let stranger = self.stranger()["id"].clone();
        let what = |kind: &str, thing: &Json| format!("{kind} {} of {}", thing["name"], thing["assignee_id"]);
        let ips = list("primary_ips");
        things
            .beside
            .extend(ips.iter().filter(|ip| ip["assignee_id"] != stranger).map(|ip| what("address", ip)));
        for kind in ["volumes", "placement_groups"] {
            things.beside.extend(list(kind).iter().map(|thing| what(kind, thing)));
        }
        for kind in SHARED {
            assert!(list(kind).len() <= 1, "one of each is enough for all: {:?}", list(kind));
        }
        things
    }
}

/// A lab whose tasks take no longer than they must.
fn quick(hosts: Vec<LabHost>) -> LabSettings {
    LabSettings { hosts, quick: true, ..LabSettings::new("".into(), ORCH.into()) }
}

/// Whether a process of ours has ended, without taking leave of it: until then its pid is nobody else's.
fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), options).unwrap().is_some()
}

/// A machine, as its host shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) mark: String,
    pub(super) id: String,
    pub(super) runs: bool,
}

/// What is on a host.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Things {
    pub(super) machines: Vec<Machine>,
    /// Disks, discs, addresses and groups.
    pub(super) beside: BTreeSet<String>,
}
