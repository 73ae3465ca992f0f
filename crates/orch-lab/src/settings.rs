//! What a lab is to be: which hosts it has, and how they behave.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use orch_model::{Host, HostName, Provider};
use serde::{Deserialize, Serialize};

/// What a host of a lab is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostKind {
    /// A Proxmox VE box.
    Proxmox,
    /// A project at Hetzner Cloud.
    Hetzner,
}

impl HostKind {
    /// Its name, for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Proxmox => "Proxmox VE",
            Self::Hetzner => "Hetzner Cloud",
        }
    }

    /// What the file with its published description is called.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Proxmox => "pve-api-9.0.3.json",
            Self::Hetzner => "hcloud-openapi.json",
        }
    }

    /// Where the real one is served.
    pub const fn port(self) -> u16 {
        match self {
            Self::Proxmox => 8006,
            Self::Hetzner => 443,
        }
    }
}

/// One host of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabHost {
    /// Its name, by which it is told apart from the others.
    pub name: HostName,
    /// What it is.
    pub kind: HostKind,
    /// Where its API is served; 0 is any port that is free, which it keeps then.
    pub port: u16,
    /// What its API calls an image, and what that is for the local provider. What is not here is made from this machine's own
    /// programs.
    #[serde(default)]
    pub images: BTreeMap<String, String>,
    /// Proxmox: what its node is called.
    #[serde(default)]
    pub node: Option<String>,
    /// Proxmox: where disks go.
    #[serde(default)]
    pub datastore: Option<String>,
    /// Proxmox: what machines are attached to.
    #[serde(default)]
    pub bridge: Option<String>,
    /// Proxmox: where snippets go.
    #[serde(default)]
    pub snippets: Option<String>,
    /// Proxmox: the images that lie there, such as `local:import/debian-13.qcow2`.
    #[serde(default)]
    pub volumes: BTreeSet<String>,
}

impl LabHost {
    /// A host at the usual port, all of whose images are made from this machine's own programs.
    pub const fn new(name: HostName, kind: HostKind) -> Self {
        Self {
            name,
            kind,
            port: kind.port(),
            images: BTreeMap::new(),
            node: None,
            datastore: None,
            bridge: None,
            snippets: None,
            volumes: BTreeSet::new(),
        }
    }

    /// What stands in for a host of a site, with the images that its nodes can be made from; nothing where the host is one that
    /// needs no lab.
    pub fn of(host: &Host, images: BTreeSet<String>) -> Option<Self> {
        match &host.provider {
            Provider::Local => None,
            Provider::Hetzner(_) => Some(Self::new(host.name.clone(), HostKind::Hetzner)),
            Provider::Proxmox(proxmox) => Some(Self {
                node: Some(proxmox.node.clone()),
                datastore: Some(proxmox.datastore.clone()),
                bridge: Some(proxmox.bridge.to_string()),
                snippets: proxmox.snippets.clone(),
                volumes: images,
                ..Self::new(host.name.clone(), HostKind::Proxmox)
            }),
        }
    }
}

/// What a lab is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabSettings {
    /// The lab's own folder.
    pub folder: PathBuf,
    /// The `orch` program, which is what makes machines and what the lab itself runs in.
    pub program: PathBuf,
    /// Its hosts.
    pub hosts: Vec<LabHost>,
    /// How long every question to an API takes longer than it would.
    pub latency: Duration,
    /// Whether machines exist on paper alone.
    pub paper: bool,
    /// Whether tasks take no longer than they must, and not as long as they were seen to take at the real ones.
    pub quick: bool,
    /// At which ports of their addresses machines answer.
    pub ports: Vec<u16>,
    /// A folder with the published descriptions of the APIs, where they are at hand: what these would refuse is refused.
    #[serde(default)]
    pub descriptions: Option<PathBuf>,
    /// How long the lab may take to come up, and to go down.
    pub patience: Duration,
}

impl LabSettings {
    /// A lab with a Proxmox VE box called `pve` and a project at Hetzner Cloud called `cloud`.
    pub fn new(folder: PathBuf, program: PathBuf) -> Self {
        let host = |name: &str, kind| LabHost::new(name.parse().expect("it is a name"), kind);
        Self {
            folder,
            program,
            hosts: vec![host("pve", HostKind::Proxmox), host("cloud", HostKind::Hetzner)],
            latency: Duration::ZERO,
            paper: false,
            quick: false,
            ports: vec![22, 2222],
            descriptions: None,
            patience: Duration::from_secs(30),
        }
    }
}
