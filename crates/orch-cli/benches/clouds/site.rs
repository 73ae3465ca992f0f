//! A site with so many equal nodes on a host that a lab stands in for, and the lab.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use orch_lab::{
    Api, ApiParts, Calls, Hetzner, HetznerSettings, HostKind, Lab, LabHost, LabSettings, Proxmox,
    ProxmoxSettings, ProxmoxTimings, ProxmoxToken, Trouble,
};
use orch_model::HostName;
use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// What every answer takes longer.
pub(crate) const LATENCY: Duration = Duration::from_millis(20);
/// How many nodes are worked on at once.
pub(crate) const PARALLELISM: usize = 16;
/// More than any table makes.
const SERVERS: usize = 500;
const QUESTIONS: u32 = 100_000;

/// What machines are made from on a Proxmox VE.
const IMAGE: &str = "local:import/debian-13.qcow2";

/// A host, as it is called and what it is.
pub(crate) const HOSTS: [(&str, HostKind); 2] = [("pve", HostKind::Proxmox), ("cloud", HostKind::Hetzner)];

/// Whether tasks take as long as they were seen to take, or no longer than they must.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tasks {
    Real,
    Quick,
}

/// A site, its hosts on paper, and a driver.
pub(crate) struct Site {
    folder: TempDir,
    host: &'static str,
    lab: Lab,
    _runtime: Runtime,
}

/// What a command took, and what it reported.
pub(crate) struct Ran {
    pub(crate) wall: Duration,
    pub(crate) calls: usize,
    pub(crate) report: Json,
}

impl Site {
    pub(crate) fn of(host: &'static str, nodes: usize, tasks: Tasks) -> Self {
        let folder = TempDir::new().unwrap();
        let runtime = Runtime::new().unwrap();
        let hosts = HOSTS.map(|(name, kind)| LabHost {
            port: 0,
            datastore: (kind == HostKind::Proxmox).then(|| "local-zfs".to_owned()),
            ..LabHost::new(name.parse().unwrap(), kind)
        });
        let settings = LabSettings {
            hosts: hosts.into(),
            latency: LATENCY,
            paper: true,
            quick: tasks == Tasks::Quick,
            ..LabSettings::new(folder.path().join("state/lab"), env!("CARGO_BIN_EXE_orch").into())
        };
        let lab = runtime.block_on(Lab::begin(&settings, &api)).unwrap();
        let site = Self { folder, host, lab, _runtime: runtime };
        site.write(nodes);
        site
    }

    fn write(&self, nodes: usize) {
        let (name, count) =
            if nodes > 1 { ("node", format!("count: {nodes}, ")) } else { ("node-1", String::new()) };
        let manifest = format!(
            "{{ schema_version: 2, name: bench, settings: {{ verify_ssh: false, parallelism: {PARALLELISM} }},\n  \
             nodes: [{{ name: {name}, {count}type: vm, preset: small, image: debian-13 }}] }}\n"
        );
        let files = [
            ("site.yaml", "{ name: bench, node_user: root, timezone: UTC }\n"),
            (
                "hosts/pve.yaml",
                "{ provider: proxmox, api_endpoint: 'https://pve.example:8006', api_token: secret:t, node: pve,\n  \
                 datastore: local-zfs, bridge: vmbr0, images: { '*': 'local:import/debian-13.qcow2' } }\n",
            ),
            (
                "hosts/cloud.yaml",
                "{ provider: hetzner, token: secret:t, location: nbg1, server_types: { small: cx22 },\n  \
                 networks: [10.10.0.0/16], firewall: orch-base, images: { '*': debian-13 } }\n",
            ),
            ("presets/small.yaml", "{ cores: 1, memory: 512, disk: 2 }\n"),
            ("manifests/bench.yaml", &manifest),
        ];
        for (path, text) in files {
            let path = self.folder.path().join("site").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// What the host was asked so far.
    pub(crate) fn calls(&self) -> &Calls {
        let host: HostName = self.host.parse().unwrap();
        self.lab.calls(&host).unwrap()
    }

    /// Runs a verb on every node; it must succeed.
    pub(crate) fn orch(&self, words: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orch"));
        let (state, site) = (self.folder.path().join("state"), self.folder.path().join("site"));
        command.arg("--lab").arg("--state").arg(state).arg("--site").arg(site);
        command.args(words.split_whitespace()).args(["-M", "bench", "-H", self.host, "--json"]);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        self.calls().reset();
        let begun = Instant::now();
        let output = command.output().unwrap();
        let wall = begun.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`orch {words}` ended with {}: {said}", output.status);
        let calls = usize::try_from(self.calls().count()).unwrap();
        Ran { wall, calls, report: serde_json::from_slice(&output.stdout).unwrap() }
    }
}

/// The API of a host, which has room for more machines than the lab's own.
fn api(parts: ApiParts) -> Result<Arc<dyn Api>, Trouble> {
    match parts.host.kind {
        HostKind::Proxmox => proxmox(parts),
        HostKind::Hetzner => hetzner(parts),
    }
}

fn proxmox(parts: ApiParts) -> Result<Arc<dyn Api>, Trouble> {
    let secret = parts.token.expose().rsplit('=').next().unwrap_or_default();
    let settings = ProxmoxSettings {
        tokens: vec![ProxmoxToken::of_root("orch", secret)],
        volumes: [(IMAGE.to_owned(), 1 << 30)].into(),
        timings: if parts.quick { ProxmoxTimings::quick() } else { ProxmoxTimings::default() },
        memory: 1 << 38,
        ..ProxmoxSettings::new("pve", parts.machines, parts.faults)
    };
    Ok(Arc::new(Proxmox::new(settings).map_err(|error| Trouble(error.to_string()))?))
}

fn hetzner(parts: ApiParts) -> Result<Arc<dyn Api>, Trouble> {
    let usual = HetznerSettings::new(parts.machines, parts.faults);
    let settings = HetznerSettings {
        token: parts.token.expose().to_owned(),
        server_limit: SERVERS,
        limit: QUESTIONS,
        action_time: if parts.quick { Duration::from_millis(5) } else { usual.action_time },
        ..usual
    };
    Ok(Arc::new(Hetzner::open(settings).map_err(|error| Trouble(error.to_string()))?))
}
