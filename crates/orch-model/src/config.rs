//! The effective configuration of a node: spec, posture and site in one.
//!
//! It is what the driver pushes and what the spec server answers, byte for byte the same, and its digest is how a
//! node is known to be up to date.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::digest::Digest;
use crate::files::{Health, Hypervisor, Install, Rollout, RootLogin, Trigger, YesNo};
use crate::identity::Identity;
use crate::unit::{Cidr, SecretRef, Timespan};
use crate::word::{
    Domain, FileMode, KeyName, NodeName, NodePath, Package, PublicKey, SecretDigest, SpecName, StorePath,
    TimeZone, Unit, UserName,
};

/// By what the values of a node's secrets are known again.
pub type SecretDigests = BTreeMap<KeyName, SecretDigest>;

/// What one node becomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Received")]
pub struct Config {
    /// Who the node is.
    pub node: Identity,
    /// The spec that this came from.
    pub spec: SpecName,
    /// Its host name.
    pub hostname: NodeName,
    /// How a node is known to be up to date.
    digest: Digest,
    /// By what the values of its secrets are known again; none before they were opened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    secret_digests: SecretDigests,
    /// The NixOS system that it evaluated to; none before it did, and on nodes that are not NixOS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<StorePath>,
    /// What it shares with the other nodes of this spec on this host.
    #[serde(flatten)]
    pub role: Arc<Role>,
    /// The digest of what the files and modules of the site say, without values of secrets and systems.
    #[serde(skip)]
    said: Digest,
}

impl Config {
    /// A node's configuration. The digest of its role is asked for, because many nodes share one.
    pub(crate) fn new(node: Identity, spec: SpecName, hostname: NodeName, role: (Arc<Role>, Digest)) -> Self {
        let (role, role_digest) = role;
        let said = Digest::of(&(&node, &spec, &hostname, role_digest));
        let (secret_digests, system) = (SecretDigests::new(), None);
        Self { node, spec, hostname, digest: said, secret_digests, system, role, said }
    }

    /// The same, with secrets of these values: other values make another configuration.
    pub fn with_secrets(mut self, digests: SecretDigests) -> Self {
        self.secret_digests = digests;
        self.digest = self.whole();
        self
    }

    /// The same, evaluated to this system: another system makes another configuration.
    pub fn with_system(mut self, system: StorePath) -> Self {
        self.system = Some(system);
        self.digest = self.whole();
        self
    }

    /// The same, judged by these checks as well: those that its files do not name make another configuration.
    pub fn with_health(mut self, health: Vec<Health>) -> Self {
        let mut more: Vec<Health> = Vec::new();
        for check in health {
            if !self.role.health.contains(&check) && !more.contains(&check) {
                more.push(check);
            }
        }
        if !more.is_empty() {
            Arc::make_mut(&mut self.role).health.extend(more);
            self.said = Digest::of(&(&self.node, &self.spec, &self.hostname, self.role.digest()));
            self.digest = self.whole();
        }
        self
    }

    /// The NixOS system that it evaluated to.
    pub const fn system(&self) -> Option<&StorePath> {
        self.system.as_ref()
    }

    /// The digest of all there is, in whatever order it became known.
    fn whole(&self) -> Digest {
        let mut digest = self.said;
        if !self.secret_digests.is_empty() {
            digest = Digest::of(&(digest, &self.secret_digests));
        }
        if let Some(system) = &self.system {
            digest = Digest::of(&(digest, "system", system));
        }
        digest
    }

    /// By what the values of its secrets are known again.
    pub const fn secret_digests(&self) -> &SecretDigests {
        &self.secret_digests
    }

    /// How a node is known to be up to date: two configurations with the same digest are the same.
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

/// A configuration as it arrives from elsewhere, before its digest is known to be its own.
#[derive(Deserialize)]
struct Received {
    node: Identity,
    spec: SpecName,
    hostname: NodeName,
    digest: Digest,
    #[serde(default)]
    secret_digests: SecretDigests,
    #[serde(default)]
    system: Option<StorePath>,
    #[serde(flatten)]
    role: Role,
}

impl TryFrom<Received> for Config {
    type Error = &'static str;

    fn try_from(received: Received) -> Result<Self, Self::Error> {
        let role_digest = received.role.digest();
        let role = (Arc::new(received.role), role_digest);
        let config = Self::new(received.node, received.spec, received.hostname, role);
        let mut config = config.with_secrets(received.secret_digests);
        if let Some(system) = received.system {
            config = config.with_system(system);
        }
        if config.digest == received.digest {
            Ok(config)
        } else {
            Err("the configuration does not have its digest")
        }
    }
}

/// What all nodes of a spec on a host become.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// The domain, where one is known.
    pub domain: Option<Domain>,
    /// How it gets its address.
    pub network: Network,
    /// The time zone.
    pub timezone: TimeZone,
    /// Accounts.
    pub users: Vec<User>,
    /// How the SSH server answers.
    pub ssh: Ssh,
    /// Whether users with sudo need no password for it.
    pub sudo_nopasswd: bool,
    /// Whether addresses that guess passwords are shut out.
    pub fail2ban: bool,
    /// Packages: the site's, the spec's, the posture's, each once.
    pub packages: Vec<Package>,
    /// Services to run and not to run.
    pub services: Services,
    /// The software with which it hosts others, where it does.
    pub hypervisor: Option<Hypervisor>,
    /// Files.
    pub files: Vec<File>,
    /// Secrets that it is given as files in memory, by name.
    pub secrets: Vec<Secret>,
    /// Whether it reads sops files itself.
    pub enroll_recipient: bool,
    /// NixOS modules that make it up, where it is NixOS.
    pub nixos: Option<Nixos>,
    /// What must hold for it to count as healthy.
    pub health: Vec<Health>,
    /// When it converges again.
    pub run: Run,
    /// Free keys, as the spec says them.
    pub config: BTreeMap<String, Json>,
}

impl Role {
    /// The digest of what many nodes share.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(self)
    }
}

/// How a node gets its address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// It asks.
    Dhcp,
    /// It has a fixed one.
    Static {
        /// The address with its prefix.
        ip: Cidr,
        /// The gateway, where there is one.
        gateway: Option<IpAddr>,
        /// Name servers.
        dns: Vec<IpAddr>,
    },
}

/// An account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    /// Its name.
    pub name: UserName,
    /// Whether it may use sudo.
    pub sudo: bool,
    /// The keys that open it.
    pub ssh_keys: Vec<PublicKey>,
}

/// How the SSH server answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ssh {
    /// The port it listens on.
    pub port: u16,
    /// Whether root may log in.
    pub permit_root_login: RootLogin,
    /// Whether a password is enough.
    pub password_authentication: YesNo,
}

/// Services to run and not to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Services {
    /// Run, now and after a reboot.
    pub enable: Vec<Unit>,
    /// Do not.
    pub disable: Vec<Unit>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// Where it lies.
    pub path: NodePath,
    /// What it holds.
    pub content: String,
    /// Its permission bits.
    pub mode: FileMode,
    /// Who owns it.
    pub owner: UserName,
}

/// A secret, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Secret {
    /// What it is called on this node.
    pub name: KeyName,
    /// Where its value is kept.
    pub from: SecretRef,
    /// Where it appears.
    pub path: NodePath,
    /// Its permission bits.
    pub mode: FileMode,
    /// Who owns it.
    pub owner: UserName,
}

/// NixOS modules that make up a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nixos {
    /// Modules, as paths relative to the site.
    pub modules: Vec<String>,
    /// How a new system reaches the node.
    pub rollout: Rollout,
    /// How a machine without NixOS gets it, where it should.
    pub install: Option<Install>,
}

/// When a node that pulls converges again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// When.
    pub trigger: Trigger,
    /// How often, where the trigger is a schedule.
    pub interval: Timespan,
}
