//! What an action does once its time has come: the part that is written into the project. What it does to the machine is
//! done before, in `course`.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::catalog::ServerType;
use super::state::{
    Action, Course, Firewall, Kind, Network, PrivateNet, Route, Server, State, Status, Subnet, Target,
};

/// What an action does to its subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Effect {
    /// It fails, without having done anything.
    Fail,
    /// It never ends.
    Never,
    Create,
    Start,
    Stop,
    /// Off and on again; with force also one that is off.
    Restart(bool),
    /// Another type, and whether the disk grows with it.
    Retype(String, bool),
    /// Another beginning, from an image as it is shown.
    Rebuild(Json),
    Delete,
    Attach(PrivateNet),
    Detach(u64),
    Join(u64),
    Leave,
    /// The image is complete.
    Image(u64),
    Backups(bool),
    /// Protection from deletion, and from being rebuilt.
    Protect(Option<bool>, Option<bool>),
    AddSubnet(Subnet),
    RemoveSubnet(String),
    AddRoute(Route),
    RemoveRoute(Route),
    Widen(String),
    Rules(Vec<Json>),
    Apply(Target),
    Unapply(Target),
    CreateVolume,
    AttachVolume(u64),
    DetachVolume,
    ResizeVolume(u64),
}

impl Effect {
    /// Whether things of this kind take no other order meanwhile.
    pub(super) const fn locks(&self, kind: Kind) -> bool {
        let is_about_firewall = matches!(self, Self::Rules(_) | Self::Apply(_) | Self::Unapply(_));
        !is_about_firewall && matches!(kind, Kind::Server | Kind::Network | Kind::Volume)
    }

    /// What is said of a server meanwhile.
    pub(super) const fn status_meanwhile(&self) -> Option<Status> {
        match self {
            Self::Create => Some(Status::Initializing),
            Self::Start | Self::Restart(_) => Some(Status::Starting),
            Self::Stop => Some(Status::Stopping),
            Self::Retype(..) => Some(Status::Migrating),
            Self::Rebuild(_) => Some(Status::Rebuilding),
            Self::Delete => Some(Status::Deleting),
            _ => None,
        }
    }
}

/// Writes down that an action has had its effect.
pub(super) fn settle(state: &mut State, action: &Action) {
    let (kind, id) = action.subject;
    match (&action.effect, kind) {
        (Effect::Protect(delete, rebuild), _) => protect(state, (kind, id), *delete, *rebuild),
        (Effect::Delete, Kind::Server) => delete_server(state, id),
        (Effect::Image(image), _) => {
            if let Some(image) = state.images.get_mut(image) {
                image.is_ready = true;
            }
        }
        (effect, Kind::Server) => {
            if let Some(server) = state.servers.get_mut(&id) {
                settle_server(server, effect);
            }
        }
        (effect, Kind::Network) => {
            if let Some(network) = state.networks.get_mut(&id) {
                settle_network(network, effect);
            }
        }
        (effect, Kind::Firewall) => {
            if let Some(firewall) = state.firewalls.get_mut(&id) {
                settle_firewall(firewall, effect);
            }
        }
        (effect, Kind::Volume) => settle_volume(state, id, effect),
        _ => {}
    }
}

fn settle_server(server: &mut Server, effect: &Effect) {
    server.revision += 1;
    match effect {
        Effect::Create | Effect::Stop => server.status = Status::Off,
        Effect::Start => server.status = Status::Running,
        Effect::Restart(is_forced) if *is_forced || server.status == Status::Running => {
            server.status = Status::Running;
        }
        Effect::Retype(name, grows) => {
            server.kind.clone_from(name);
            // The description says of this action that it starts the server again.
            server.status = Status::Running;
            if let Some(kind) = ServerType::find(name).filter(|_| *grows) {
                server.disk = kind.disk;
            }
        }
        Effect::Rebuild(image) => {
            server.image = image.clone();
            server.rebuilt += 1;
            server.status = Status::Running;
        }
        Effect::Attach(net) => server.nets.push(net.clone()),
        Effect::Detach(network) => server.nets.retain(|net| net.network != *network),
        Effect::Join(group) => server.group = Some(*group),
        Effect::Leave => server.group = None,
        Effect::Backups(on) => server.has_backups = *on,
        _ => {}
    }
}

fn settle_network(network: &mut Network, effect: &Effect) {
    match effect {
        Effect::AddSubnet(subnet) => network.subnets.push(subnet.clone()),
        Effect::RemoveSubnet(range) => network.subnets.retain(|subnet| subnet.ip_range != *range),
        Effect::AddRoute(route) => network.routes.push(route.clone()),
        Effect::RemoveRoute(route) => network.routes.retain(|known| known != route),
        Effect::Widen(range) => network.ip_range.clone_from(range),
        _ => {}
    }
}

fn settle_firewall(firewall: &mut Firewall, effect: &Effect) {
    match effect {
        Effect::Rules(rules) => firewall.rules.clone_from(rules),
        Effect::Apply(target) if !firewall.applied_to.contains(target) => {
            firewall.applied_to.push(target.clone());
        }
        Effect::Unapply(target) => firewall.applied_to.retain(|known| known != target),
        _ => {}
    }
}

fn settle_volume(state: &mut State, id: u64, effect: &Effect) {
    let Some(volume) = state.volumes.get_mut(&id) else { return };
    match effect {
        Effect::CreateVolume => volume.is_ready = true,
        Effect::AttachVolume(server) => volume.server = Some(*server),
        Effect::DetachVolume => volume.server = None,
        Effect::ResizeVolume(size) => volume.size = *size,
        _ => {}
    }
}

fn protect(state: &mut State, (kind, id): (Kind, u64), delete: Option<bool>, rebuild: Option<bool>) {
    if let (Some(meta), Some(delete)) = (state.meta(kind, id), delete) {
        meta.is_protected = delete;
    }
    if let (Some(server), Some(rebuild)) =
        (state.servers.get_mut(&id).filter(|_| kind == Kind::Server), rebuild)
    {
        server.is_rebuild_protected = rebuild;
    }
}

fn delete_server(state: &mut State, id: u64) {
    state.servers.remove(&id);
    state.ips.retain(|_, ip| ip.assignee != Some(id) || !ip.is_auto_deleted);
    for ip in state.ips.values_mut().filter(|ip| ip.assignee == Some(id)) {
        ip.assignee = None;
    }
    for volume in state.volumes.values_mut().filter(|volume| volume.server == Some(id)) {
        volume.server = None;
    }
    for firewall in state.firewalls.values_mut() {
        firewall.applied_to.retain(|target| *target != Target::Server(id));
    }
    state.images.retain(|_, image| !image.is_backup || image.from != id);
    for action in state.actions.values_mut().filter(|action| action.is_about(Kind::Server, id)) {
        if action.is_running() && action.effect != Effect::Delete {
            action.course = Course::Error("the server was deleted".into());
            action.finished = Some(jiff::Timestamp::now());
        }
    }
}
