//! What a project holds: the things that were made in it, and the actions that made them. All of it is kept in one file.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::effect::Effect;

/// A kind of thing that can be made in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Server,
    SshKey,
    Network,
    Firewall,
    PlacementGroup,
    Image,
    Volume,
    PrimaryIp,
}

impl Kind {
    const NAMES: [(Self, &str, &str); 8] = [
        (Self::Server, "server", "servers"),
        (Self::SshKey, "ssh_key", "ssh_keys"),
        (Self::Network, "network", "networks"),
        (Self::Firewall, "firewall", "firewalls"),
        (Self::PlacementGroup, "placement_group", "placement_groups"),
        (Self::Image, "image", "images"),
        (Self::Volume, "volume", "volumes"),
        (Self::PrimaryIp, "primary_ip", "primary_ips"),
    ];

    /// The kind whose collection has this name.
    pub(super) fn of_collection(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, _, collection)| *collection == name).map(|(kind, ..)| *kind)
    }

    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }
}

/// What everything has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) created: Timestamp,
    /// Whether it is protected from deletion.
    pub(super) is_protected: bool,
}

/// What a server is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Initializing,
    Starting,
    Running,
    Stopping,
    Off,
    Deleting,
    Migrating,
    Rebuilding,
}

/// A server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Server {
    pub(super) meta: Meta,
    pub(super) status: Status,
    /// The name of its type.
    pub(super) kind: String,
    /// The name of its location.
    pub(super) location: String,
    /// The image that it was made from, as it was shown then.
    pub(super) image: Json,
    /// The disk in GB, which stays behind the type's when the type is changed without it.
    pub(super) disk: u32,
    pub(super) keys: Vec<String>,
    pub(super) user_data: String,
    /// How often it was rebuilt.
    pub(super) rebuilt: u32,
    pub(super) is_rebuild_protected: bool,
    pub(super) has_backups: bool,
    pub(super) ipv4: Option<u64>,
    pub(super) ipv6: Option<u64>,
    pub(super) nets: Vec<PrivateNet>,
    pub(super) group: Option<u64>,
    /// Its machine is never started, whatever is said of it.
    pub(super) is_silent: bool,
    /// Counts what was done with it, so that what was seen before is not written over what was done since.
    pub(super) revision: u64,
}

/// A server's part in a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PrivateNet {
    pub(super) network: u64,
    pub(super) ip: String,
    pub(super) alias_ips: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SshKey {
    pub(super) meta: Meta,
    pub(super) fingerprint: String,
    pub(super) public_key: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Network {
    pub(super) meta: Meta,
    pub(super) ip_range: String,
    pub(super) subnets: Vec<Subnet>,
    pub(super) routes: Vec<Route>,
    pub(super) is_exposed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subnet {
    pub(super) kind: String,
    pub(super) ip_range: String,
    pub(super) zone: String,
    pub(super) vswitch: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Route {
    pub(super) destination: String,
    pub(super) gateway: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Firewall {
    pub(super) meta: Meta,
    /// As they are shown.
    pub(super) rules: Vec<Json>,
    pub(super) applied_to: Vec<Target>,
}

/// What a firewall is applied to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    Server(u64),
    LabelSelector(String),
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PlacementGroup {
    pub(super) meta: Meta,
}

/// An image that was made from a server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Image {
    /// Without a name; people see the description.
    pub(super) meta: Meta,
    pub(super) description: String,
    pub(super) is_backup: bool,
    pub(super) is_ready: bool,
    pub(super) from: u64,
    pub(super) from_name: String,
    pub(super) disk: u32,
    /// What the server was made from.
    pub(super) origin: Json,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Volume {
    pub(super) meta: Meta,
    pub(super) size: u64,
    pub(super) location: String,
    pub(super) format: Option<String>,
    pub(super) server: Option<u64>,
    pub(super) is_ready: bool,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PrimaryIp {
    pub(super) meta: Meta,
    pub(super) is_v6: bool,
    pub(super) ip: String,
    pub(super) location: String,
    pub(super) assignee: Option<u64>,
    pub(super) is_auto_deleted: bool,
}

/// How an action goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Course {
    Running,
    Success,
    Error(String),
}

/// Something that takes its time.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Action {
    pub(super) command: String,
    pub(super) subject: (Kind, u64),
    /// What else it is about.
    pub(super) others: Vec<(Kind, u64)>,
    pub(super) course: Course,
    pub(super) started: Timestamp,
    pub(super) finished: Option<Timestamp>,
    pub(super) effect: Effect,
    /// The action that has to succeed before this one begins.
    pub(super) after: Option<u64>,
    /// What was said of the server before, and is said again if this fails.
    pub(super) before: Option<Status>,
}

impl Action {
    pub(super) fn is_running(&self) -> bool {
        self.course == Course::Running
    }

    pub(super) fn is_about(&self, kind: Kind, id: u64) -> bool {
        self.subject == (kind, id) || self.others.contains(&(kind, id))
    }
}

/// All that a project holds.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct State {
    last: u64,
    pub(super) servers: BTreeMap<u64, Server>,
    pub(super) keys: BTreeMap<u64, SshKey>,
    pub(super) networks: BTreeMap<u64, Network>,
    pub(super) firewalls: BTreeMap<u64, Firewall>,
    pub(super) groups: BTreeMap<u64, PlacementGroup>,
    pub(super) images: BTreeMap<u64, Image>,
    pub(super) volumes: BTreeMap<u64, Volume>,
    pub(super) ips: BTreeMap<u64, PrimaryIp>,
    pub(super) actions: BTreeMap<u64, Action>,
    /// Actions that nobody carries out yet.
    #[serde(skip)]
    pub(super) fresh: Vec<u64>,
}

impl State {
    /// An id that nothing has, nor anything that is offered.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last = self.last.max(1000) + 1;
        self.last
    }

    /// Whether a running action keeps others from this. One that never ends does not keep it from being deleted.
    pub(super) fn is_locked(&self, kind: Kind, id: u64, is_deletion: bool) -> bool {
        let mut running =
            self.actions.values().filter(|action| action.is_running() && action.is_about(kind, id));
        running.any(|action| action.effect.locks(kind) && !(is_deletion && action.effect == Effect::Never))
    }

    fn metas(&mut self, kind: Kind) -> Vec<(u64, &mut Meta)> {
        match kind {
            Kind::Server => self.servers.iter_mut().map(|(id, thing)| (*id, &mut thing.meta)).collect(),
            Kind::SshKey => self.keys.iter_mut().map(|(id, thing)| (*id, &mut thing.meta)).collect(),
            Kind::Network => self.networks.iter_mut().map(|(id, thing)| (*id, &mut thing.meta)).collect(),
            Kind::Firewall => self.firewalls.iter_mut().map(|(id, thing)| (*id, &mut thing.meta)).collect(),
            Kind::PlacementGroup => {
                self.groups.iter_mut().map(|(id, thing)| (*id, &mut thing.meta)).collect()
            }
            Kind::Image => self.images.iter_mut().map(|(id, thing)| (*id, &mut thing.meta)).collect(),
            Kind::Volume => self.volumes.iter_mut().map(|(id, thing)| (*id, &mut thing.meta)).collect(),
            Kind::PrimaryIp => self.ips.iter_mut().map(|(id, thing)| (*id, &mut thing.meta)).collect(),
        }
    }

    pub(super) fn meta(&mut self, kind: Kind, id: u64) -> Option<&mut Meta> {
        self.metas(kind).into_iter().find(|(known, _)| *known == id).map(|(_, meta)| meta)
    }

    /// Whether something else of this kind has this name.
    pub(super) fn is_taken(&mut self, kind: Kind, name: &str, except: Option<u64>) -> bool {
        self.metas(kind).iter().any(|(id, meta)| meta.name == name && Some(*id) != except)
    }

    /// The servers in a placement group.
    pub(super) fn members(&self, group: u64) -> Vec<u64> {
        self.servers.iter().filter(|(_, server)| server.group == Some(group)).map(|(id, _)| *id).collect()
    }
}
