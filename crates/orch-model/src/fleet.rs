//! What a request means: every node with its place, size, mode and configuration.
//!
//! Nothing here is optional that is known by the time a fleet exists. An `Option` that is left is a real one: a
//! node on the host has no parent, a node without a spec has no configuration.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::files::{Mode, NodeKind, OnError, Pattern, ProviderKind, VmidRange};
use crate::identity::Identity;
use crate::unit::{Cidr, SecretRef, Timespan};
use crate::word::{
    Fingerprint, HostName, ManifestName, NodeName, PresetName, PublicKey, SiteName, SpecName, Tag, Unit, Url,
    UserName,
};

/// The nodes of a manifest on their hosts, in an order in which each comes after its parent and what it depends on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fleet {
    /// The site that owns the nodes.
    pub site: SiteName,
    /// The manifest that describes them.
    pub manifest: ManifestName,
    /// The shape in which they hang together.
    pub pattern: Pattern,
    /// How a run behaves.
    pub settings: Settings,
    /// The hosts that nodes are placed on.
    pub hosts: BTreeMap<HostName, Host>,
    /// The nodes, in order.
    pub nodes: Vec<Node>,
}

/// How a run behaves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// What a failed node means for the others.
    pub on_error: OnError,
    /// Whether a node counts as created only once SSH answers.
    pub verify_ssh: bool,
    /// Whether `test` destroys what it made even when it failed.
    pub cleanup_on_failure: bool,
    /// How many nodes are worked on at once.
    pub parallelism: usize,
    /// How long each phase may take.
    pub timeouts: Timeouts,
}

/// How long each phase of a node may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// Making the machine.
    pub create: Timespan,
    /// From power-on until it can be reached.
    pub boot: Timespan,
    /// Applying the configuration.
    pub config: Timespan,
    /// Taking the machine down.
    pub destroy: Timespan,
}

/// A place for nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Its name.
    pub name: HostName,
    /// What it is, and how it is spoken to.
    #[serde(flatten)]
    pub provider: Provider,
    /// How the host itself is reached, where it can be.
    pub ssh: Option<HostSsh>,
    /// The account that orch uses on its nodes.
    pub node_user: UserName,
    /// Where its nodes find the spec server, where that is fixed.
    pub server_url: Option<Url>,
}

/// How a host itself is reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostSsh {
    /// The account.
    pub user: UserName,
    /// The address.
    pub address: String,
    /// The port.
    pub port: u16,
    /// The host's public keys; nothing else is trusted.
    pub host_keys: Vec<PublicKey>,
    /// A private key that opens it, besides orch's own: a path, relative to the site.
    pub identity: Option<String>,
    /// Another host through which it is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jump: Option<HostName>,
}

/// What a host is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "provider", rename_all = "lowercase")]
pub enum Provider {
    /// This very computer.
    Local,
    /// A Proxmox VE box.
    Proxmox(Proxmox),
    /// A Hetzner Cloud project.
    Hetzner(Hetzner),
}

impl Provider {
    /// Its kind, without the details.
    pub const fn kind(&self) -> ProviderKind {
        match self {
            Self::Local => ProviderKind::Local,
            Self::Proxmox(_) => ProviderKind::Proxmox,
            Self::Hetzner(_) => ProviderKind::Hetzner,
        }
    }
}

/// How a Proxmox VE box is spoken to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proxmox {
    /// The address of its API.
    pub api_endpoint: Url,
    /// The API token, by mention.
    pub api_token: SecretRef,
    /// How its certificate is known.
    pub trust: Trust,
    /// The name of the Proxmox node.
    pub node: String,
    /// Where disks go.
    pub datastore: String,
    /// The bridge that nodes are attached to.
    pub bridge: Unit,
    /// The VLAN of nodes, where they are in one.
    pub vlan: Option<u32>,
    /// The range of VMIDs that are derived.
    pub vmid_range: VmidRange,
    /// The pool that machines are put into, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The datastore that takes snippets, where there is one.
    pub snippets: Option<String>,
    /// Where images have the `orch-node` program, where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_program: Option<String>,
}

/// How a server's certificate is known.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// By its fingerprint.
    Fingerprint(Fingerprint),
    /// By the authority in this file.
    CaFile(String),
    /// By the authorities that this machine trusts.
    System,
}

/// How a Hetzner Cloud project is spoken to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hetzner {
    /// The API token, by mention.
    pub token: SecretRef,
    /// The address of the API.
    pub api_endpoint: Url,
    /// How its certificate is known.
    pub trust: Trust,
    /// The location of servers.
    pub location: String,
    /// Where else servers may be made, in this order.
    pub fallback_locations: Vec<String>,
    /// Server types by preset.
    pub server_types: BTreeMap<String, String>,
    /// Private networks that servers join.
    pub networks: Vec<Cidr>,
    /// The firewall that servers stand behind, where there is one.
    pub firewall: Option<Unit>,
    /// Whether the servers of a manifest are kept apart.
    pub spread: bool,
    /// Where images have the `orch-node` program, where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_program: Option<String>,
}

/// One machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// Who it is.
    pub identity: Identity,
    /// The entry of the manifest that describes it: its own name, or with `count` the name that several share.
    pub entry: NodeName,
    /// What kind of machine it is.
    pub kind: NodeKind,
    /// What it is made from: an image, or for a container a template.
    pub image: String,
    /// How large it is.
    pub size: Size,
    /// The preset that the size came from, where there is one.
    pub preset: Option<PresetName>,
    /// The VMID that the manifest insists on; elsewhere it is derived from the identity.
    pub vmid: Option<u32>,
    /// The node that it lives on; without one it lives on the host.
    pub parent: Option<NodeName>,
    /// How many nodes it lives inside of.
    pub depth: usize,
    /// Nodes that must be ready before it, without being its parent.
    pub depends_on: Arc<[NodeName]>,
    /// The other nodes of a mesh.
    pub peers: Vec<NodeName>,
    /// Words that group nodes.
    pub tags: Arc<BTreeSet<Tag>>,
    /// Whether nodes may live on it.
    pub can_host: bool,
    /// Who brings its configuration to it.
    pub mode: Mode,
    /// What it becomes; without a spec it is created and not configured.
    pub config: Option<Config>,
    /// Why it cannot be given its configuration, where that was found out: its NixOS system does not evaluate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
}

impl Node {
    /// Its name in the manifest.
    pub fn name(&self) -> &NodeName {
        &self.identity.node
    }

    /// The spec that it becomes, where there is one.
    pub fn spec(&self) -> Option<&SpecName> {
        self.config.as_ref().map(|config| &config.spec)
    }
}

/// How large a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Processor cores.
    pub cores: u32,
    /// Memory in MB.
    pub memory: u32,
    /// Disk in GB.
    pub disk: u32,
}
