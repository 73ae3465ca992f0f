//! One driver with its key, its folder and the ways that it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{Config, ManifestName, Mode, PublicKey, Request, Scope, Sources, parse, resolve};
use orch_providers::push::Program;
use orch_providers::ssh::{Hop, Ssh, SshSettings, Way, Wayfinder, ensure_identity};
use orch_run::{HostLocks, Permit, Progress, RunId, StateDir, Target, TransportError};
use tempfile::TempDir;
use uuid::Uuid;

use crate::sshd::{Plan, Sshd};

/// One driver.
pub(crate) struct Scene {
    pub(crate) ssh: Ssh,
    pub(crate) key: PublicKey,
    /// Where the driver keeps its files.
    pub(crate) folder: PathBuf,
    pub(crate) ways: Arc<Ways>,
    pub(crate) base: Arc<TempDir>,
    settings: SshSettings,
}

/// The ways that a driver knows.
#[derive(Default)]
pub(crate) struct Ways(Mutex<BTreeMap<Uuid, Way>>);

#[async_trait]
impl Wayfinder for Ways {
    async fn way(&self, target: &Target) -> Result<Way, TransportError> {
        Ok(self.0.lock().unwrap()[&target.uuid].clone())
    }
}

impl Scene {
    /// A driver that is not patient at all.
    pub(crate) fn new() -> Self {
        Self::with("ssh", |_| {})
    }

    /// A driver with a folder of this name, and with other settings.
    pub(crate) fn with(folder: &str, change: impl FnOnce(&mut SshSettings)) -> Self {
        let base = tempfile::tempdir().unwrap();
        let (folder, identity) = (base.path().join(folder), base.path().join("id"));
        let key = ensure_identity(&identity).unwrap();
        let mut settings = SshSettings::new(folder.clone(), identity);
        settings.reach = Duration::from_secs(20);
        change(&mut settings);
        let ways = Arc::new(Ways::default());
        let ssh = Ssh::new(Arc::clone(&ways) as Arc<dyn Wayfinder>, settings.clone());
        Self { ssh, key, folder, ways, base: Arc::new(base), settings }
    }

    /// The next run of the same driver.
    pub(crate) fn again(&self) -> Self {
        let (ways, settings) = (Arc::clone(&self.ways), self.settings.clone());
        let ssh = Ssh::new(Arc::clone(&ways) as Arc<dyn Wayfinder>, settings.clone());
        let (key, folder, base) = (self.key.clone(), self.folder.clone(), Arc::clone(&self.base));
        Self { ssh, key, folder, ways, base, settings }
    }

    /// A server that lets this driver in.
    pub(crate) fn server(&self) -> Sshd {
        Plan::new(&self.key).start()
    }

    /// A node behind these hops.
    pub(crate) fn node(&self, hops: Vec<Hop>) -> Target {
        self.node_with(hops, Program::There("/nowhere/orch-node".into()))
    }

    /// The same, configured by this program.
    pub(crate) fn node_with(&self, hops: Vec<Hop>, program: Program) -> Target {
        self.node_by(Way { hops, program, sudo: false })
    }

    pub(crate) fn node_by(&self, way: Way) -> Target {
        let uuid = Uuid::new_v4();
        self.ways.0.lock().unwrap().insert(uuid, way);
        Target { identity: config().node, uuid, mode: Mode::Push, progress: Progress::to_nobody() }
    }

    /// Leave to change the node's host.
    pub(crate) fn permit(&self) -> Permit {
        let state = StateDir::locate(Some(&self.base.path().join("state"))).unwrap();
        let hosts = BTreeSet::from([config().node.host]);
        let site = "home".parse().unwrap();
        Permit::under(HostLocks::take(&state, &site, &hosts, &RunId::new(), "test").unwrap())
    }

    /// What the driver has in its folder.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }
}

/// The configuration of the node `web`.
pub(crate) fn config() -> Config {
    config_of("files: [ { path: /etc/orch-test, content: \"it is so\" } ]")
}

/// The same with a spec of these keys.
pub(crate) fn config_of(spec: &str) -> Config {
    let spec = format!("schema_version: 1\n{spec}\n");
    let texts = [
        ("site.yaml", "name: home"),
        ("hosts/father.yaml", "provider: local"),
        ("presets/small.yaml", "{ cores: 1, memory: 1024, disk: 10 }"),
        ("postures/dev.yaml", "fail2ban: { enabled: false }"),
        ("specs/base.yaml", &spec),
        (
            "manifests/m.yaml",
            "schema_version: 2\nname: m\nnodes:\n  - { name: web, type: vm, spec: base, preset: small, image: debian-12 }\n",
        ),
    ];
    let sources = Sources::from_texts(texts);
    let (manifest, host): (ManifestName, _) = ("m".parse().unwrap(), "father".parse().unwrap());
    let scope = Scope::Manifest { name: &manifest, host: Some(&host) };
    let catalog = parse(&sources, scope).unwrap_or_else(|problems| unreachable!("{problems}"));
    let request = Request { manifest: manifest.clone(), host: Some(host.clone()), mode: None };
    let fleet = resolve(&catalog, &request).unwrap_or_else(|problems| unreachable!("{problems}"));
    fleet.nodes[0].config.clone().unwrap()
}

pub(crate) fn argv(words: &[&str]) -> Vec<String> {
    words.iter().copied().map(str::to_owned).collect()
}
