//! `site.yaml`: what holds for every host and node.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::decode::record;
use crate::unit::SecretRef;
use crate::word::{Domain, KeyName, Package, PublicKey, SiteName, TimeZone, Unit, Url, UserName};

record! {
    /// What a node takes over where its own spec is silent. A host's word wins over the site's.
    pub(crate) struct Defaults as "set of defaults" {
        /// The domain of nodes.
        domain: Option<Domain>,
        /// The time zone of nodes.
        timezone: Option<TimeZone>,
        /// Name servers for nodes with a fixed address.
        dns_servers: Vec<IpAddr>,
        /// The gateway for nodes with a fixed address.
        gateway: Option<IpAddr>,
        /// The bridge that nodes are attached to.
        bridge: Option<Unit>,
        /// The account that orch uses on a node.
        node_user: Option<UserName>,
        /// Where nodes that pull find the spec server.
        server_url: Option<Url>,
    }
}

impl Defaults {
    /// Takes from `other` whatever is not said here.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let dns_servers = if self.dns_servers.is_empty() { &other.dns_servers } else { &self.dns_servers };
        Self {
            domain: self.domain.clone().or_else(|| other.domain.clone()),
            timezone: self.timezone.clone().or_else(|| other.timezone.clone()),
            dns_servers: dns_servers.clone(),
            gateway: self.gateway.or(other.gateway),
            bridge: self.bridge.clone().or_else(|| other.bridge.clone()),
            node_user: self.node_user.clone().or_else(|| other.node_user.clone()),
            server_url: self.server_url.clone().or_else(|| other.server_url.clone()),
        }
    }
}

record! {
    /// The spec server's own settings.
    pub(crate) struct ServerSettings as "server section" {
        /// The keys that sign provisioning tokens, by their id.
        signing_keys: BTreeMap<KeyName, SecretRef>,
        /// Whether tokens without audience and expiry are still taken.
        accept_legacy_tokens: bool = false,
    }
}

record! {
    /// Who may ask for which jobs.
    pub(crate) struct JobSettings as "jobs section" {
        /// Kinds of jobs, by user or group.
        allow: BTreeMap<String, Vec<String>>,
    }
}

record! {
    /// A site: what holds for every host and node.
    pub(crate) struct Site as "site" {
        /// Marks everything that this site owns, so that two sites never touch each other's machines. Default: the domain.
        name: Option<SiteName>,
        /// Public SSH keys by name, such as `alice@laptop`.
        ssh_keys: BTreeMap<KeyName, PublicKey>,
        /// Packages for every node; they come before the spec's.
        packages: Vec<Package>,
        /// The spec server's own settings.
        server: Option<ServerSettings>,
        /// Who may ask for which jobs.
        jobs: Option<JobSettings>,
        /// The same settings as at the top level, for sites that keep them apart.
        defaults: Option<Defaults>,
        ..
        /// What nodes take over where nothing else is said.
        top: Defaults,
    }
}

impl Site {
    /// What the site says about nodes, wherever in the file it stands.
    pub(crate) fn defaults(&self) -> Defaults {
        self.defaults.as_ref().map_or_else(|| self.top.clone(), |apart| self.top.or(apart))
    }

    /// The mark of everything that this site owns.
    pub(crate) fn site_name(&self) -> SiteName {
        let of_domain =
            || self.defaults().domain.and_then(|domain| domain.as_str().to_lowercase().parse().ok());
        self.name.clone().or_else(of_domain).unwrap_or_else(|| "orch".parse().expect("`orch` is a site name"))
    }
}
