//! A site, a server on loopback, and a clock that tests turn.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use orch_model::pull::SpecAnswer;
use orch_model::{Identity, SiteName};
use orch_run::StateDir;
use orch_secrets::Identities;
use orch_server::{Certificates, Clock, InOffice, Limits, Minter, Operator, ServerFolder, SitePlace, nobody};
use tempfile::TempDir;

use crate::client::{Answer, Client};

pub(crate) const A: &str = "m.a@h";
pub(crate) const B: &str = "m.b@h";
/// When the tests happen.
pub(crate) const NOW: u64 = 1_800_000_000;

pub(crate) struct Scene {
    pub(crate) base: TempDir,
    pub(crate) folder: ServerFolder,
    pub(crate) now: Arc<AtomicU64>,
    pub(crate) server: Option<InOffice>,
    pub(crate) client: Client,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(&limits())
    }

    pub(crate) fn with(limits: &Limits) -> Self {
        let mut scene = Self::without_server();
        scene.start(limits);
        scene
    }

    /// A site that nobody serves yet.
    pub(crate) fn without_server() -> Self {
        let base = TempDir::new().unwrap();
        let files = [
            ("site.yaml", "name: lab\n"),
            ("hosts/h.yaml", "provider: local\n"),
            ("presets/small.yaml", "{ cores: 1, memory: 512, disk: 1 }\n"),
            ("postures/dev.yaml", "{ sudo: { nopasswd: true } }\n"),
            ("manifests/m.yaml", MANIFEST),
        ];
        for (path, text) in files {
            write(&base.path().join("site").join(path), text);
        }
        let folder = folder(base.path());
        let now = Arc::new(AtomicU64::new(NOW));
        let client = Client::new(([127, 0, 0, 1], 1).into(), &[], &[]);
        let scene = Self { base, folder, now, server: None, client };
        scene.say("hello");
        scene
    }

    /// Starts the server, after it was ended or dropped.
    pub(crate) fn start(&mut self, limits: &Limits) {
        let (server, address) = serve(self.base.path(), limits, &self.clock());
        self.is_served_at(address);
        self.server = Some(server);
    }

    /// Has the client ask here.
    pub(crate) fn is_served_at(&mut self, address: SocketAddr) {
        let pins = Certificates::of(&self.folder).unwrap().pins();
        self.client = Client::new(address, &pins, &[b"http/1.1"]);
    }

    pub(crate) fn clock(&self) -> Clock {
        let now = Arc::clone(&self.now);
        Arc::new(move || now.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.now.fetch_add(by.as_secs(), Ordering::SeqCst);
    }

    /// Has the spec of every node say this.
    pub(crate) fn say(&self, text: &str) {
        let spec = format!(
            "schema_version: 1\nfiles: [{{ path: /etc/motd, content: {text} }}]\nrun: {{ interval: 15m }}\n"
        );
        write(&self.site("specs/base.yaml"), &spec);
    }

    pub(crate) fn site(&self, path: &str) -> PathBuf {
        self.base.path().join("site").join(path)
    }

    /// A first token for a node.
    pub(crate) fn token(&self, node: &str) -> String {
        let minter = Minter::of(&self.folder, self.clock());
        let (_, token) = minter.mint(&node.parse().unwrap(), &"base".parse().unwrap(), None).unwrap();
        token.expose().to_owned()
    }

    pub(crate) fn operator(&self) -> Operator {
        Operator::of(self.folder.clone())
    }

    /// A node's configuration, asked for with a token that is good.
    pub(crate) async fn fetch(&self, node: &str, token: &str) -> SpecAnswer {
        let answer = self.spec(node, token).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap()
    }

    pub(crate) async fn spec(&self, node: &str, token: &str) -> Answer {
        self.client.get(&format!("/v1/spec/{node}"), token).await
    }
}

/// Serves the site below a folder, and says where.
pub(crate) fn serve(base: &Path, limits: &Limits, clock: &Clock) -> (InOffice, SocketAddr) {
    let place = SitePlace { root: base.join("site"), manifest: None, identities: Identities::default() };
    // One that was dropped gives up the office when the last whom it served is cut off.
    let enter =
        || InOffice::enter(&folder(base), place.clone(), limits.clone(), clock.clone(), nobody()).unwrap();
    let wait = |_| std::thread::sleep(Duration::from_millis(5));
    let server = (0..2000)
        .find_map(|round| {
            enter().or_else(|| {
                wait(round);
                None
            })
        })
        .unwrap();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    server.listen(listener).unwrap();
    (server, address)
}

fn folder(base: &Path) -> ServerFolder {
    let state = StateDir::locate(Some(&base.join("state"))).unwrap();
    ServerFolder::of(&state, &"lab".parse::<SiteName>().unwrap())
}

const MANIFEST: &str = "schema_version: 2\nname: m\nexecution: { default_mode: pull }\nnodes:\n  \
    - { name: a, type: vm, spec: base, preset: small, image: any }\n  \
    - { name: b, type: vm, spec: base, preset: small, image: any }\n  \
    - { name: bare, type: vm, preset: small, image: any }\n";

/// Limits that tests need not wait for.
pub(crate) fn limits() -> Limits {
    Limits { wait: Duration::from_secs(5), ..patience_of(Duration::from_secs(2)) }
}

/// Limits of somebody who waits for nobody longer than this.
pub(crate) fn patience_of(patience: Duration) -> Limits {
    Limits { read: patience, write: patience, ..Limits::default() }
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A node by its name.
pub(crate) fn node(name: &str) -> Identity {
    name.parse().unwrap()
}
