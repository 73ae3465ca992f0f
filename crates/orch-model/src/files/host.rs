//! `hosts/<name>.yaml`: a place for nodes. The provider decides which keys there are.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value as Json, json};

use crate::decode::{
    Decode, Fields, Located, Property, Record, Within, choice, properties_schema, record, refuse,
};
use crate::files::site::Defaults;
use crate::text::{Reporter, Value};
use crate::unit::{Cidr, SecretRef};
use crate::word::{Fingerprint, HostName, PublicKey, Unit, Url, UserName};

choice! {
    /// Where nodes can be placed.
    pub enum ProviderKind as "provider" {
        /// This very computer.
        Local = "local",
        /// A Proxmox VE box.
        Proxmox = "proxmox",
        /// A Hetzner Cloud project.
        Hetzner = "hetzner",
        /// A k3s cluster, for workloads and not for nodes.
        K3s = "k3s",
    }
}

choice! {
    /// How a new NixOS system reaches a machine.
    pub enum Rollout as "way to roll out" {
        /// orch copies the closure, activates it as a test, confirms and makes it permanent.
        Closure = "closure",
        /// `nixos-rebuild` does it.
        NixosRebuild = "nixos-rebuild",
    }
}

choice! {
    /// How a machine without NixOS gets it.
    pub enum Install as "way to install" {
        /// By `nixos-anywhere`.
        NixosAnywhere = "nixos-anywhere",
    }
}

record! {
    /// How the host itself is reached.
    pub(crate) struct HostSsh as "ssh section" {
        /// The account.
        user: UserName = UserName::root(),
        /// The port.
        port: Within<1, 65535> = Within::new::<22>(),
        /// The address. Default: the host's name.
        address: Option<String>,
        /// The host's public keys; nothing else is trusted.
        host_keys: Vec<PublicKey>,
        /// A private key that opens the host, besides orch's own and those of an SSH agent: a path, relative to the site.
        identity: Option<String>,
        /// Another host of the site through which this one is reached.
        jump: Option<Located<HostName>>,
    }
}

record! {
    /// This very computer.
    pub(crate) struct LocalHost as "local host" {
        /// Root filesystems by image name; `*` stands for every other name.
        images: BTreeMap<String, String>,
        /// How the host itself is reached.
        ssh: Option<HostSsh>,
        ..
        /// What nodes on it take over.
        defaults: Defaults,
    }
}

record! {
    /// A Proxmox VE box.
    pub(crate) struct ProxmoxHost as "proxmox host" {
        /// The address of its API, such as `https://father.core:8006`.
        api_endpoint: Url,
        /// The API token, by mention of a secret.
        api_token: SecretRef,
        /// The SHA-256 fingerprint of its certificate.
        tls_fingerprint: Option<Fingerprint>,
        /// A file with the certificate authority that signed its certificate.
        ca_file: Option<String>,
        /// The name of the Proxmox node. Default: the host's name.
        node: Option<String>,
        /// Where disks go.
        datastore: String,
        /// The VLAN of nodes.
        vlan: Option<Within<1, 4094>>,
        /// The range of VMIDs that are derived.
        vmid_range: VmidRange = VmidRange::DEFAULT,
        /// The pool that machines are put into.
        pool: Option<String>,
        /// The datastore that takes snippets.
        snippets: Option<String>,
        /// Where images have the `orch-node` program. Default: it is brought to each node.
        node_program: Option<String>,
        /// Volumes by image name.
        images: BTreeMap<String, String>,
        /// How the host itself is reached.
        ssh: Option<HostSsh>,
        ..
        /// What nodes on it take over.
        defaults: Defaults,
    }
}

record! {
    /// A Hetzner Cloud project.
    pub(crate) struct HetznerHost as "hetzner host" {
        /// The API token, by mention of a secret.
        token: SecretRef,
        /// The location of servers.
        location: String,
        /// Locations to try, in this order, where that one has none left.
        fallback_locations: Vec<String>,
        /// Server types by preset.
        server_types: BTreeMap<String, String>,
        /// Private networks that servers join.
        networks: Vec<Cidr>,
        /// The firewall that servers stand behind.
        firewall: Option<Unit>,
        /// Whether the servers of a manifest are kept on different physical machines, ten of them at most.
        spread: bool = false,
        /// The address of the API, where it is not Hetzner's own.
        api_endpoint: Option<Url>,
        /// The SHA-256 fingerprint of its certificate, where that is not one that everybody trusts.
        tls_fingerprint: Option<Fingerprint>,
        /// A file with the certificate authority that signed its certificate.
        ca_file: Option<String>,
        /// Where images have the `orch-node` program. Default: it is brought to each node.
        node_program: Option<String>,
        /// Images by name.
        images: BTreeMap<String, String>,
        /// How the host itself is reached.
        ssh: Option<HostSsh>,
        ..
        /// What nodes on it take over.
        defaults: Defaults,
    }
}

record! {
    /// A k3s cluster, for workloads.
    pub(crate) struct K3sHost as "k3s host" {
        /// The kubeconfig, by mention of a secret.
        kubeconfig: SecretRef,
        ..
        /// What workloads on it take over.
        defaults: Defaults,
    }
}

/// An inclusive range of VMIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct VmidRange(u32, u32);

impl VmidRange {
    const DEFAULT: Self = Self(10_000, 19_999);

    /// The first VMID of the range.
    pub const fn first(self) -> u32 {
        self.0
    }

    /// The last VMID of the range.
    pub const fn last(self) -> u32 {
        self.1
    }
}

type Vmid = Within<100, 999_999_999>;

impl Decode for VmidRange {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let before = cx.count();
        let bounds = Vec::<Vmid>::decode(value, cx)?;
        match bounds.as_slice() {
            [first, last] if first <= last => Some(Self(first.get(), last.get())),
            _ if cx.count() > before => None,
            _ => refuse(value.span, "a range is two numbers, the smaller one first", cx),
        }
    }

    fn placeholder() -> Self {
        Self::DEFAULT
    }

    fn schema() -> Json {
        json!({ "type": "array", "items": Vmid::schema(), "minItems": 2, "maxItems": 2 })
    }
}

/// A host by its provider.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Host {
    Local(LocalHost),
    Proxmox(ProxmoxHost),
    Hetzner(HetznerHost),
    K3s(K3sHost),
}

impl Host {
    pub(crate) const fn defaults(&self) -> &Defaults {
        match self {
            Self::Local(host) => &host.defaults,
            Self::Proxmox(host) => &host.defaults,
            Self::Hetzner(host) => &host.defaults,
            Self::K3s(host) => &host.defaults,
        }
    }

    /// The secret that opens its API, where it needs one.
    pub(crate) const fn mention(&self) -> Option<&SecretRef> {
        match self {
            Self::Local(_) => None,
            Self::Proxmox(host) => Some(&host.api_token),
            Self::Hetzner(host) => Some(&host.token),
            Self::K3s(host) => Some(&host.kubeconfig),
        }
    }

    /// How the host itself is reached, where the file says so.
    pub(crate) const fn ssh(&self) -> Option<&HostSsh> {
        match self {
            Self::Local(host) => host.ssh.as_ref(),
            Self::Proxmox(host) => host.ssh.as_ref(),
            Self::Hetzner(host) => host.ssh.as_ref(),
            Self::K3s(_) => None,
        }
    }

    /// The host through which it is reached itself, where it is through one.
    pub(crate) fn jump(&self) -> Option<&HostName> {
        self.ssh()?.jump.as_deref()
    }

    /// Images by the name that manifests use.
    pub(crate) const fn images(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Local(host) => Some(&host.images),
            Self::Proxmox(host) => Some(&host.images),
            Self::Hetzner(host) => Some(&host.images),
            Self::K3s(_) => None,
        }
    }
}

impl Decode for Host {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, "host", cx)?;
        // Which keys there may be depends on the provider, so without one nothing more can be said.
        let provider: ProviderKind = fields.take_known("provider", cx)?;
        fields.is_called(match provider {
            ProviderKind::Local => "local host",
            ProviderKind::Proxmox => "proxmox host",
            ProviderKind::Hetzner => "hetzner host",
            ProviderKind::K3s => "k3s host",
        });
        let host = match provider {
            ProviderKind::Local => Self::Local(LocalHost::take(&mut fields, cx)),
            ProviderKind::Proxmox => Self::Proxmox(ProxmoxHost::take(&mut fields, cx)),
            ProviderKind::Hetzner => Self::Hetzner(HetznerHost::take(&mut fields, cx)),
            ProviderKind::K3s => Self::K3s(K3sHost::take(&mut fields, cx)),
        };
        fields.finish(cx);
        Some(host)
    }

    fn placeholder() -> Self {
        Self::Local(LocalHost::placeholder())
    }

    fn schema() -> Json {
        let of = |kind: ProviderKind, doc: &str, mut properties: Vec<Property>| {
            let schema = json!({ "const": kind.as_str() });
            let provider =
                Property { key: "provider", schema, doc: doc.into(), required: true, default: None };
            properties.insert(0, provider);
            properties_schema(doc, properties)
        };
        json!({
            "description": "A host: a place for nodes. The provider decides which keys there are.",
            "oneOf": [
                of(ProviderKind::Local, "This very computer.", LocalHost::properties()),
                of(ProviderKind::Proxmox, "A Proxmox VE box.", ProxmoxHost::properties()),
                of(ProviderKind::Hetzner, "A Hetzner Cloud project.", HetznerHost::properties()),
                of(ProviderKind::K3s, "A k3s cluster, for workloads.", K3sHost::properties()),
            ],
        })
    }
}
