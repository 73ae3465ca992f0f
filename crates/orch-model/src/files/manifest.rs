//! `manifests/<name>.yaml`: nodes and how they hang together.

use alloc::string::String;
use alloc::vec::Vec;

use crate::decode::{Filled, Located, Version, Within, choice, record};
use crate::files::preset::Disk;
use crate::unit::Timespan;
use crate::word::{HostName, ManifestName, NodeName, PresetName, SpecName, Tag};

choice! {
    /// The shape in which nodes hang together.
    pub enum Pattern as "pattern" {
        /// No node lives on another.
        Flat = "flat",
        /// Some nodes live on others.
        Tiered = "tiered",
        /// Every node has peers.
        Mesh = "mesh",
        /// One node is the root; every other one is its child or depends on it.
        HubSpoke = "hub-spoke",
        /// Roots on two hosts or more.
        Federated = "federated",
    }
}

choice! {
    /// Who brings a node's configuration to it.
    pub enum Mode as "mode" {
        /// The driver.
        Push = "push",
        /// The node itself.
        Pull = "pull",
        /// The driver says when, the node fetches.
        Hybrid = "hybrid",
    }
}

choice! {
    /// What a failed node means for the others.
    pub enum OnError as "value of on_error" {
        /// Start nothing new and let running steps end.
        Stop = "stop",
        /// Also destroy what this run created, in reverse.
        Rollback = "rollback",
        /// Skip what depends on the failed node and go on with the rest.
        Continue = "continue",
    }
}

choice! {
    /// What kind of machine a node is.
    pub enum NodeKind as "type" {
        /// A virtual machine.
        Vm = "vm",
        /// A container.
        Ct = "ct",
        /// A virtual machine that hosts others.
        Pve = "pve",
    }
}

impl NodeKind {
    /// `a vm`, for messages.
    pub(crate) const fn with_article(self) -> &'static str {
        match self {
            Self::Vm => "a vm",
            Self::Ct => "a ct",
            Self::Pve => "a pve",
        }
    }
}

record! {
    /// How the nodes of a manifest receive their configuration.
    pub(crate) struct Execution as "execution section" {
        /// The mode of every node that does not name one.
        default_mode: Mode = Mode::Push,
    }
}

record! {
    /// How one node receives its configuration.
    pub(crate) struct NodeExecution as "execution section of a node" {
        /// The mode of this node.
        mode: Option<Mode>,
    }
}

record! {
    /// How long each phase of a node may take.
    pub(crate) struct Timeouts as "timeouts section" {
        /// Making the machine.
        create: Timespan = Timespan::minutes(10),
        /// From power-on until it can be reached.
        boot: Timespan = Timespan::minutes(5),
        /// Applying the configuration.
        config: Timespan = Timespan::minutes(10),
        /// Taking the machine down.
        destroy: Timespan = Timespan::minutes(5),
    }
}

record! {
    /// How a run of this manifest behaves.
    pub(crate) struct Settings as "settings section" {
        /// What a failed node means for the others.
        on_error: OnError = OnError::Stop,
        /// Whether a node counts as created only once SSH answers.
        verify_ssh: bool = true,
        /// Whether `test` destroys what it made even when it failed.
        cleanup_on_failure: bool = true,
        /// How many nodes are worked on at once.
        parallelism: Within<1, 1000> = Within::new::<16>(),
        /// How long each phase may take.
        timeouts: Timeouts,
    }
}

record! {
    /// One machine of a manifest, or `count` equal ones.
    pub(crate) struct ManifestNode as "node" {
        /// Its name, unique in the manifest.
        name: Located<NodeName>,
        /// What kind of machine it is.
        kind as "type": Located<NodeKind>,
        /// More than one makes `<name>-1` to `<name>-<count>`, all with the same parent.
        count: Located<Within<1, 100_000>> = Located::default_value(Within::new::<1>()),
        /// What it becomes: a name under specs/. Without one it is created and not configured.
        spec: Option<Located<SpecName>>,
        /// How large it is: a name under presets/.
        preset: Option<Located<PresetName>>,
        /// The image of a vm or pve.
        image: Option<Located<String>>,
        /// The template of a ct.
        template: Option<Located<String>>,
        /// Its number on a Proxmox host; derived from its identity where it is not given.
        vmid: Option<Located<Within<100, 999_999_999>>>,
        /// Disk in GB; wins over the preset.
        disk: Option<Disk>,
        /// Where it is placed, if not on the host that the command names: a name under hosts/.
        host: Option<Located<HostName>>,
        /// The node that it lives on: another node of this manifest.
        parent: Option<Located<NodeName>>,
        /// Nodes that must be ready before it, without being its parent.
        depends_on: Vec<Located<NodeName>>,
        /// The other nodes of a mesh; mutual.
        peers: Vec<Located<NodeName>>,
        /// Words that group nodes, for `--only tag:<tag>`.
        tags: Vec<Tag>,
        /// How it receives its configuration.
        execution: NodeExecution,
    }
}

record! {
    /// A manifest: nodes and how they hang together.
    pub(crate) struct Manifest as "manifest" {
        /// The layout of this file: 2.
        schema_version: Version<2>,
        /// The manifest's name, the same as its file's.
        name: Located<ManifestName>,
        /// What it is for.
        description: Option<String>,
        /// The shape in which the nodes hang together; checked against them.
        pattern: Located<Pattern> = Located::default_value(Pattern::Flat),
        /// How nodes receive their configuration.
        execution: Execution,
        /// How a run behaves.
        settings: Settings,
        /// The machines.
        nodes: Filled<ManifestNode>,
    }
}
