//! A project of the lab that is served over TLS, and the provider that speaks to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_lab::{
    Api, Asked, Calls, Certificate, Faults, Hetzner as Lab, HetznerSettings, Machines, Paper, Rule,
    ServeSettings, Serving,
};
use orch_model::{HostName, Identity, NodeKind, NodeName, Size, Trust, UserName};
use orch_plan::{Action, HostView, Machine, MachineRef, MachineSpec};
use orch_providers::api::{Client, ClientSettings, Tcp, Trusting};
use orch_providers::hetzner::{Hetzner, HetznerSetup, Pace};
use orch_run::{
    Done, HostLocks, Order, Permit, Progress, Provider as _, ProviderError, RunId, Scope, StateDir,
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use uuid::Uuid;

/// What stands for the nodes of these tests: a preset that is a bit smaller than its type.
pub(crate) const SIZE: Size = Size { cores: 2, memory: 3500, disk: 30 };
pub(crate) const SMALL: &str = "cx23";
pub(crate) const LARGE: &str = "cx33";

pub(crate) struct Project {
    pub(crate) lab: Lab,
    pub(crate) faults: Faults,
    pub(crate) setup: HetznerSetup,
    pub(crate) token: String,
    certificate: Certificate,
    serving: Serving,
    permit: Permit,
    folder: TempDir,
}

/// What is done differently.
pub(crate) struct With {
    pub(crate) settings: HetznerSettings,
    pub(crate) setup: fn(&mut HetznerSetup),
    /// Who answers in the lab's place.
    pub(crate) wrap: fn(Lab) -> Arc<dyn Api>,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut With)) -> Self {
        Self::on(Arc::new(Paper::default()), change)
    }

    pub(crate) fn on(machines: Arc<dyn Machines>, change: impl FnOnce(&mut With)) -> Self {
        let faults = Faults::default();
        let mut settings = HetznerSettings::new(machines, faults.clone());
        settings.action_time = Duration::from_millis(15);
        settings.description = description();
        let mut with = With { settings, setup: |_| {}, wrap: |lab| Arc::new(lab) };
        change(&mut with);
        let token = with.settings.token.clone();
        let lab = Lab::open(with.settings).unwrap();
        let certificate = Certificate::make(&["127.0.0.1".to_owned()]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let serve = ServeSettings { faults: faults.clone(), ..ServeSettings::default() };
        let serving = Serving::begin(listener, &certificate, (with.wrap)(lab.clone()), serve).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(folder.path())).unwrap();
        let (site, hosts) = ("conformance".parse().unwrap(), BTreeSet::from([host()]));
        let locks = HostLocks::take(&state, &site, &hosts, &RunId::new(), "tests").unwrap();
        let client = client(&serving, &certificate, &token);
        let mut setup = setup(&serving, client, folder.path().join("keys/driver"));
        (with.setup)(&mut setup);
        Self { lab, faults, setup, token, certificate, serving, permit: Permit::under(locks), folder }
    }

    /// A provider that has spoken to nobody yet, as another program would have it.
    pub(crate) fn provider(&self) -> Hetzner {
        self.provider_with(|_| {})
    }

    pub(crate) fn provider_with(&self, change: impl FnOnce(&mut HetznerSetup)) -> Hetzner {
        let mut setup = self.setup.clone();
        setup.client = client(&self.serving, &self.certificate, &self.token);
        change(&mut setup);
        Hetzner::new(setup)
    }

    pub(crate) fn client_with(&self, token: &str) -> Arc<Client> {
        client(&self.serving, &self.certificate, token)
    }

    pub(crate) fn permit(&self) -> Permit {
        self.permit.clone()
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn calls(&self) -> &Calls {
        self.serving.calls()
    }

    /// How often something was asked of a path that contains this.
    pub(crate) fn asked(&self, method: &str, path: &str) -> usize {
        let is_it = |call: &&orch_lab::Call| call.method == method && call.path.contains(path);
        self.calls().list().iter().filter(is_it).count()
    }

    pub(crate) fn fault(&self, rule: Rule) {
        self.faults.add(rule);
    }

    /// Asks the lab itself, past the wire.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &Json) -> (u16, Json) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let asked = Asked {
            method: method.into(),
            path: format!("/v1{path}"),
            query: query.into(),
            headers: BTreeMap::from([("authorization".into(), format!("Bearer {}", self.token))]),
            body: if body.is_null() { Vec::new() } else { body.to_string().into_bytes() },
        };
        let answer = self.lab.answer(asked).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    pub(crate) async fn get(&self, path: &str) -> Json {
        let (status, body) = self.ask("GET", path, &Json::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Makes something past the provider.
    pub(crate) async fn put_there(&self, path: &str, body: &Json) -> Json {
        let (status, answer) = self.ask("POST", path, body).await;
        assert_eq!(status, 201, "{path}: {answer}");
        answer
    }

    /// Waits until a server is what it should be.
    pub(crate) async fn wait_for(&self, id: &str, status: &str) {
        let path = format!("/servers/{id}");
        until(status, || async { self.get(&path).await["server"]["status"] == status }).await;
    }

    /// Puts a server there that is not ours, and waits until it runs.
    pub(crate) async fn put_stranger(&self, name: &str) -> String {
        let body = json!({ "name": name, "server_type": "cx22", "image": "debian-13", "location": "nbg1" });
        let made = self.put_there("/servers", &body).await;
        let id = made["server"]["id"].to_string();
        self.wait_for(&id, "running").await;
        id
    }

    pub(crate) async fn switch_off(&self, id: &str) {
        self.put_there(&format!("/servers/{id}/actions/poweroff"), &Json::Null).await;
        self.wait_for(id, "off").await;
    }

    pub(crate) async fn apply(&self, order: &Order) -> Result<Done, ProviderError> {
        self.provider().apply(order, &self.permit).await
    }

    /// The machines that are there, past every fault.
    pub(crate) async fn machines(&self) -> Vec<Machine> {
        let view = self.provider().observe(&Scope { host: host(), node: None }).await.unwrap();
        let HostView::Seen { machines, .. } = view else { panic!("it was seen") };
        machines
    }

    /// The one machine that bears the order's mark.
    pub(crate) async fn only(&self, order: &Order) -> Machine {
        let marks = order.marks();
        let mut ours = self.machines().await;
        ours.retain(|machine| machine.marks.as_ref() == Some(&marks));
        assert_eq!(ours.len(), 1, "exactly one machine bears the mark");
        ours.remove(0)
    }

    pub(crate) async fn labels(&self, id: &str) -> Json {
        self.get(&format!("/servers/{id}")).await["server"]["labels"].clone()
    }
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(1), wait).await;
    waited.unwrap_or_else(|_| panic!("never came: {what}"));
}

/// The published description of the API, where it is at hand: every question and every answer is held against it.
fn description() -> Option<PathBuf> {
    let folder = std::env::var_os("ORCH_API_DESCRIPTIONS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = Some(folder.join("hcloud-openapi.json")).filter(|path| path.exists());
    if path.is_none() {
        println!("skipped: holding questions against the published description, which is not at hand");
    }
    path
}

fn client(serving: &Serving, certificate: &Certificate, token: &str) -> Arc<Client> {
    let address = serving.address();
    let trust = Trust::Fingerprint(certificate.fingerprint().parse().unwrap());
    let opened = format!("Bearer {token}");
    let settings = ClientSettings {
        endpoint: format!("https://{address}/v1"),
        dial: Arc::new(Tcp { host: address.ip().to_string(), port: address.port() }),
        tls: Trusting::config(&trust, std::path::Path::new(".")).unwrap(),
        opener: Arc::new(move || Ok(opened.clone().into())),
        lanes: 16,
        limit: Duration::from_secs(30),
    };
    Arc::new(Client::new(settings).unwrap())
}

fn setup(serving: &Serving, client: Arc<Client>, identity: PathBuf) -> HetznerSetup {
    let hetzner = orch_model::Hetzner {
        token: "secret:hcloud-token".parse().unwrap(),
        api_endpoint: format!("https://{}/v1", serving.address()).parse().unwrap(),
        trust: Trust::System,
        location: "nbg1".into(),
        fallback_locations: vec!["fsn1".into(), "hel1".into()],
        server_types: BTreeMap::new(),
        networks: Vec::new(),
        firewall: None,
        spread: false,
        node_program: Some("/usr/bin/orch-node".into()),
    };
    HetznerSetup {
        host: host(),
        site: "conformance".parse().unwrap(),
        hetzner,
        client,
        user: UserName::root(),
        identity,
        server_types: (1..=120)
            .map(|number| format!("web-{number}"))
            .chain(["web".to_owned()])
            .map(|node| (node.parse().unwrap(), SMALL.to_owned()))
            .collect(),
        ssh_ports: BTreeMap::new(),
        reach: None,
        program: Arc::new(orch_providers::push::Uploaded::of("/bin/true".into())),
        pace: Pace {
            // Long enough for a computer that has much else to do; who waits in vain has to wait as long.
            answer: Duration::from_secs(3),
            look: Duration::from_mins(1),
            order: Duration::from_mins(1),
            shutdown: Duration::from_secs(2),
            tries: 4,
            first_pause: Duration::from_millis(5),
            longest_pause: Duration::from_millis(40),
            first_poll: Duration::from_millis(5),
            longest_poll: Duration::from_millis(50),
            low: 20,
            slowest: Duration::from_millis(50),
        },
    }
}

pub(crate) fn host() -> HostName {
    "cloud".parse().unwrap()
}

pub(crate) fn identity(node: &str) -> Identity {
    Identity { manifest: "orch-conformance".parse().unwrap(), node: node.parse().unwrap(), host: host() }
}

pub(crate) fn spec(name: &str) -> MachineSpec {
    let (kind, image) = (NodeKind::Vm, "debian-13".into());
    MachineSpec { name: name.into(), kind, image, size: SIZE, vmid: None, parent: None }
}

pub(crate) fn create(node: &str) -> Order {
    Order {
        site: "conformance".parse().unwrap(),
        identity: identity(node),
        uuid: Uuid::new_v4(),
        action: Action::Create { machine: spec(&format!("orch-conformance-{node}")) },
        enrolment: None,
        progress: Progress::to_nobody(),
    }
}

pub(crate) fn reference(made: &Order, machine: &Machine) -> MachineRef {
    MachineRef { id: machine.id.clone(), name: machine.name.clone(), uuid: made.uuid }
}

pub(crate) fn destroy(made: &Order, machine: &Machine) -> Order {
    Order { action: Action::Destroy { machine: reference(made, machine) }, ..made.clone() }
}

pub(crate) fn start(made: &Order, machine: &Machine) -> Order {
    Order { action: Action::Start { machine: reference(made, machine) }, ..made.clone() }
}

pub(crate) fn wanted(nodes: &[&str]) -> Vec<(NodeName, MachineSpec)> {
    nodes.iter().map(|node| (node.parse().unwrap(), spec(node))).collect()
}
