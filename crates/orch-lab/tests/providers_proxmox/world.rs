//! A Proxmox VE of the lab on a socket, drivers that use it, and people who do things there by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use orch_lab::{
    Certificate, Faults, FirstBoot, Machines, Paper, Power, ProxmoxSettings, ProxmoxTemplate, ProxmoxTimings,
    ProxmoxToken, ServeSettings, Serving, Trouble, Wanted,
};
use orch_model::{HostName, Identity, NodeKind, Request, Size, Sources, Trust, parse, resolve};
use orch_plan::{Action, HostView, Machine, MachineRef, MachineSpec};
use orch_providers::api::{Client, ClientSettings, Method, Question, Tcp, Trusting, form};
use orch_providers::proxmox::{Pace, Proxmox, ProxmoxSetup};
use orch_run::{Done, HostLocks, Order, Permit, Progress, Provider, ProviderError, RunId, Scope, StateDir};
use serde_json::Value as Json;
use tempfile::TempDir;
use uuid::Uuid;
use zeroize::Zeroizing;

/// The smallest machine that is made from the template of the world.
pub(crate) const SMALLEST: Size = Size { cores: 1, memory: 512, disk: 2 };
pub(crate) const TEMPLATE: u32 = 9000;

/// A Proxmox VE that is spoken to over TLS.
pub(crate) struct World {
    pub(crate) serving: Serving,
    pub(crate) faults: Faults,
    pub(crate) machines: Arc<Recorder>,
    fingerprint: String,
    people: Client,
}

/// Machines on paper that remember what they were given.
#[derive(Default)]
pub(crate) struct Recorder {
    paper: Paper,
    pub(crate) given: Mutex<BTreeMap<String, FirstBoot>>,
}

#[async_trait]
impl Machines for Recorder {
    async fn make(&self, wanted: &Wanted) -> Result<(), Trouble> {
        self.paper.make(wanted).await
    }
    async fn start(&self, id: &str, first: &FirstBoot) -> Result<(), Trouble> {
        self.given.lock().unwrap().insert(id.to_owned(), first.clone());
        self.paper.start(id, first).await
    }
    async fn stop(&self, id: &str) -> Result<(), Trouble> {
        self.paper.stop(id).await
    }
    async fn resize(&self, id: &str, size: orch_lab::Size) -> Result<(), Trouble> {
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

/// One driver: its provider, and leave to change the host.
pub(crate) struct Driver {
    pub(crate) provider: Arc<Proxmox>,
    pub(crate) permit: Permit,
    _folder: TempDir,
}

pub(crate) fn host() -> HostName {
    "father".parse().unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ProxmoxSettings)) -> Self {
        let (faults, machines) = (Faults::default(), Arc::new(Recorder::default()));
        let mut settings = ProxmoxSettings::new("pve1", Arc::clone(&machines) as _, faults.clone());
        settings.timings = ProxmoxTimings::quick();
        settings.tokens = vec![ProxmoxToken::of_root("orch", "0123-4567")];
        settings.templates = vec![ProxmoxTemplate::new(TEMPLATE, "debian-13")];
        settings.description = description();
        change(&mut settings);
        let api = Arc::new(orch_lab::Proxmox::new(settings).unwrap());
        let certificate = Certificate::make(&["127.0.0.1".to_owned()]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let serve = ServeSettings { faults: faults.clone(), ..ServeSettings::default() };
        let serving = Serving::begin(listener, &certificate, api, serve).unwrap();
        let fingerprint = certificate.fingerprint();
        let people = client(serving.address(), &fingerprint, Duration::from_secs(10));
        Self { serving, faults, machines, fingerprint, people }
    }

    /// Another driver.
    pub(crate) fn driver(&self) -> Driver {
        self.driver_with(|_| {})
    }

    pub(crate) fn driver_with(&self, change: impl FnOnce(&mut ProxmoxSetup)) -> Driver {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(folder.path())).unwrap();
        let site = "conformance".parse().unwrap();
        let locks = HostLocks::take(&state, &site, &[host()].into(), &RunId::new(), "test").unwrap();
        let address = self.serving.address();
        let mut setup = ProxmoxSetup {
            ssh_ports: BTreeMap::new(),
            host: host(),
            proxmox: proxmox(address, &self.fingerprint),
            client: Arc::new(client(address, &self.fingerprint, Duration::from_secs(1))),
            user: "ops".parse().unwrap(),
            identity: folder.path().join("keys/driver_ed25519"),
            names: BTreeSet::from(["orch-conformance-web".to_owned(), "workers-web".to_owned()]),
            vmids: BTreeSet::new(),
            reach: None,
            parent: None,
            program: Arc::new(orch_providers::push::Uploaded::of("/bin/true".into())),
            snippets: None,
            neighbours: None,
            pace: quick(),
        };
        change(&mut setup);
        Driver { provider: Arc::new(Proxmox::new(setup)), permit: Permit::under(locks), _folder: folder }
    }

    /// Somebody does something by hand.
    pub(crate) async fn by_hand(
        &self,
        method: Method,
        path: &str,
        pairs: &[(&str, &str)],
    ) -> Result<Json, String> {
        let body = (!pairs.is_empty())
            .then(|| ("application/x-www-form-urlencoded", form(pairs.iter().copied()).into()));
        let question = Question { method, path: format!("/api2/json{path}"), body, limit: None };
        let reply = self.people.ask(&question).await.map_err(|error| error.to_string())?;
        let answer: Json = serde_json::from_slice(&reply.body).unwrap_or_default();
        if reply.status == 200 {
            Ok(answer["data"].clone())
        } else {
            Err(format!("{} {:?}", reply.status, reply.reason))
        }
    }

    /// The same for what is a task, until it has ended.
    pub(crate) async fn task_by_hand(&self, method: Method, path: &str, pairs: &[(&str, &str)]) {
        let upid = self.by_hand(method, path, pairs).await.unwrap();
        let path =
            format!("/nodes/pve1/tasks/{}/status", orch_providers::api::encode(upid.as_str().unwrap()));
        loop {
            let status = self.by_hand(Method::Get, &path, &[]).await.unwrap();
            if status["status"] == "stopped" {
                assert_eq!(status["exitstatus"], "OK");
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// A machine that is not ours.
    pub(crate) async fn put_stranger(&self, vmid: u32, name: &str) {
        let vmid = vmid.to_string();
        let pairs = [("vmid", vmid.as_str()), ("name", name), ("memory", "512"), ("scsi0", "local-zfs:2")];
        self.task_by_hand(Method::Post, "/nodes/pve1/qemu", &pairs).await;
    }

    /// Every number that is taken, but for the template's.
    pub(crate) async fn numbers(&self) -> Vec<u64> {
        let list = self.by_hand(Method::Get, "/cluster/resources?type=vm", &[]).await.unwrap();
        let mut numbers: Vec<u64> =
            list.as_array().unwrap().iter().map(|vm| vm["vmid"].as_u64().unwrap()).collect();
        numbers.retain(|number| *number != u64::from(TEMPLATE));
        numbers.sort_unstable();
        numbers
    }

    /// The names of what was made for machines to start with.
    pub(crate) async fn discs(&self) -> Vec<String> {
        let list =
            self.by_hand(Method::Get, "/nodes/pve1/storage/local/content?content=iso", &[]).await.unwrap();
        list.as_array().unwrap().iter().map(|volume| volume["volid"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn config(&self, vmid: u32) -> Json {
        self.by_hand(Method::Get, &format!("/nodes/pve1/qemu/{vmid}/config"), &[]).await.unwrap()
    }
}

impl Driver {
    pub(crate) async fn apply(&self, order: &Order) -> Result<Done, ProviderError> {
        self.provider.apply(order, &self.permit).await
    }

    pub(crate) async fn look(&self) -> Result<HostView, ProviderError> {
        self.provider.observe(&Scope { host: host(), node: None }).await
    }

    /// The machine that bears the mark of an order, by a close look.
    pub(crate) async fn machine(&self, order: &Order) -> Option<Machine> {
        let scope = Scope { host: host(), node: Some(order.identity.clone()) };
        let view = self.provider.observe(&scope).await.unwrap();
        let mut bearing = view.machines().iter().filter(|machine| machine.marks == Some(order.marks()));
        let found = bearing.next().cloned();
        assert!(bearing.next().is_none(), "no two machines bear one mark");
        found
    }

    pub(crate) async fn reference(&self, order: &Order) -> MachineRef {
        let machine = self.machine(order).await.expect("it is there");
        MachineRef { id: machine.id, name: machine.name, uuid: order.uuid }
    }
}

/// An order to make `workers-<node>` with this number.
pub(crate) fn create(node: &str, vmid: u32) -> Order {
    Order {
        site: "conformance".parse().unwrap(),
        identity: Identity {
            manifest: "workers".parse().unwrap(),
            node: node.parse().unwrap(),
            host: host(),
        },
        uuid: Uuid::new_v4(),
        action: Action::Create { machine: spec(&format!("workers-{node}"), vmid) },
        enrolment: None,
        progress: Progress::to_nobody(),
    }
}

pub(crate) fn spec(name: &str, vmid: u32) -> MachineSpec {
    MachineSpec {
        name: name.into(),
        kind: NodeKind::Vm,
        image: TEMPLATE.to_string(),
        size: SMALLEST,
        vmid: Some(vmid),
        parent: None,
    }
}

/// Everything in moments.
pub(crate) fn quick() -> Pace {
    let moment = Duration::from_millis(2);
    Pace {
        shortest: moment,
        longest: Duration::from_millis(20),
        tries: 4,
        breath: moment,
        task: Duration::from_secs(2),
        lock_tries: 4,
        lock_pause: moment,
        agent: Duration::from_millis(200),
        shutdown: Duration::from_secs(1),
        under_way: Duration::from_millis(500),
        ..Pace::default()
    }
}

fn client(address: SocketAddr, fingerprint: &str, limit: Duration) -> Client {
    let trust = Trust::Fingerprint(fingerprint.parse().unwrap());
    Client::new(ClientSettings {
        endpoint: format!("https://{address}"),
        dial: Arc::new(Tcp { host: address.ip().to_string(), port: address.port() }),
        tls: Trusting::config(&trust, &PathBuf::from(".")).unwrap(),
        opener: Arc::new(|| Ok(Zeroizing::new("PVEAPIToken=root@pam!orch=0123-4567".to_owned()))),
        lanes: 32,
        limit,
    })
    .unwrap()
}

/// The settings of the host, as its file would give them.
fn proxmox(address: SocketAddr, fingerprint: &str) -> orch_model::Proxmox {
    let file = format!(
        "{{ provider: proxmox, api_endpoint: 'https://{address}', api_token: secret:t, tls_fingerprint: '{fingerprint}',
            node: pve1, datastore: local-zfs, bridge: vmbr0, vlan: 20, node_program: /usr/bin/orch-node }}"
    );
    let sources = Sources::from_texts([
        ("site.yaml", "name: conformance"),
        ("hosts/father.yaml", file.as_str()),
        ("presets/least.yaml", "{ cores: 1, memory: 512, disk: 2 }"),
        (
            "manifests/workers.yaml",
            "{ schema_version: 2, name: workers, nodes: [{ name: web, type: vm, preset: least, image: x }] }",
        ),
    ]);
    let manifest = "workers".parse().unwrap();
    let host = host();
    let scope = orch_model::Scope::Manifest { name: &manifest, host: Some(&host) };
    let catalog = parse(&sources, scope).unwrap();
    let fleet = resolve(&catalog, &Request { manifest, host: Some(host.clone()), mode: None }).unwrap();
    match &fleet.hosts[&host].provider {
        orch_model::Provider::Proxmox(proxmox) => proxmox.clone(),
        other => panic!("{other:?} is no Proxmox"),
    }
}

/// The published description of the API, where it is at hand: then every parameter is checked against it.
fn description() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder =
        std::env::var_os("ORCH_API_DESCRIPTIONS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    Some(folder.join("pve-api-9.0.3.json")).filter(|file| file.exists())
}
