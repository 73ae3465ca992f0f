//! How things are shown: every field that the description promises.

use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::catalog::{self, Location, ServerType};
use super::labels::Selector;
use super::range::Range;
use super::state::{
    Action, Course, Firewall, Image, Kind, Meta, Network, PrimaryIp, Server, State, Target, Volume,
};

/// All things of a kind, in the order of their ids.
pub(super) fn all(state: &State, kind: Kind) -> Vec<Json> {
    let shown = |ids: Vec<u64>| ids.into_iter().filter_map(|id| one(state, kind, id)).collect();
    match kind {
        Kind::Server => shown(state.servers.keys().copied().collect()),
        Kind::SshKey => shown(state.keys.keys().copied().collect()),
        Kind::Network => shown(state.networks.keys().copied().collect()),
        Kind::Firewall => shown(state.firewalls.keys().copied().collect()),
        Kind::PlacementGroup => shown(state.groups.keys().copied().collect()),
        Kind::Image => [catalog::images(), shown(state.images.keys().copied().collect())].concat(),
        Kind::Volume => shown(state.volumes.keys().copied().collect()),
        Kind::PrimaryIp => shown(state.ips.keys().copied().collect()),
    }
}

/// One thing.
pub(super) fn one(state: &State, kind: Kind, id: u64) -> Option<Json> {
    let (meta, mut shown) = match kind {
        Kind::Server => state.servers.get(&id).map(|server| (&server.meta, of_server(state, id, server)))?,
        Kind::SshKey => state
            .keys
            .get(&id)
            .map(|key| (&key.meta, json!({"fingerprint": key.fingerprint, "public_key": key.public_key})))?,
        Kind::Network => {
            state.networks.get(&id).map(|network| (&network.meta, of_network(state, id, network)))?
        }
        Kind::Firewall => {
            state.firewalls.get(&id).map(|firewall| (&firewall.meta, of_firewall(state, firewall)))?
        }
        Kind::PlacementGroup => state
            .groups
            .get(&id)
            .map(|group| (&group.meta, json!({"type": "spread", "servers": state.members(id)})))?,
        Kind::Image => match state.images.get(&id) {
            Some(image) => (&image.meta, of_image(image)),
            None => return catalog::images().into_iter().find(|image| image["id"] == id),
        },
        Kind::Volume => state.volumes.get(&id).map(|volume| (&volume.meta, of_volume(id, volume)))?,
        Kind::PrimaryIp => state.ips.get(&id).map(|ip| (&ip.meta, of_ip(ip)))?,
    };
    add_meta(&mut shown, kind, id, meta);
    Some(shown)
}

fn add_meta(shown: &mut Json, kind: Kind, id: u64, meta: &Meta) {
    shown["id"] = json!(id);
    shown["labels"] = json!(meta.labels);
    shown["created"] = json!(time(meta.created));
    shown["name"] = if kind == Kind::Image { Json::Null } else { json!(meta.name) };
    let is_protectable = matches!(kind, Kind::Network | Kind::Image | Kind::Volume | Kind::PrimaryIp);
    if is_protectable {
        shown["protection"] = json!({"delete": meta.is_protected});
    }
}

fn of_server(state: &State, id: u64, server: &Server) -> Json {
    let firewalls = state.firewalls.iter().filter(|(_, firewall)| covers(firewall, id, server));
    let firewalls: Vec<Json> = firewalls.map(|(id, _)| json!({"id": id, "status": "applied"})).collect();
    let ip = |id: Option<u64>| id.and_then(|id| Some((id, state.ips.get(&id)?)));
    let ipv4 = ip(server.ipv4)
        .map(|(id, ip)| json!({"id": id, "ip": ip.ip, "blocked": false, "dns_ptr": pointer(ip)}));
    let ipv6 =
        ip(server.ipv6).map(|(id, ip)| json!({"id": id, "ip": ip.ip, "blocked": false, "dns_ptr": []}));
    let nets: Vec<Json> = server
        .nets
        .iter()
        .map(|net| json!({"network": net.network, "ip": net.ip, "alias_ips": net.alias_ips, "mac_address": mac(id, net.network)}))
        .collect();
    let attached = state.volumes.iter().filter(|(_, volume)| volume.server == Some(id));
    let place = Location::find(&server.location);
    json!({
        "status": server.status, "server_type": ServerType::find(&server.kind).map(ServerType::view),
        "location": place.map(Location::view), "datacenter": place.map(Location::datacenter),
        "image": server.image, "iso": null, "rescue_enabled": false, "locked": state.is_locked(Kind::Server, id, false),
        "backup_window": server.has_backups.then_some("22-02"), "primary_disk_size": server.disk,
        "public_net": {"ipv4": ipv4, "ipv6": ipv6, "floating_ips": [], "firewalls": firewalls}, "private_net": nets,
        "outgoing_traffic": 0, "ingoing_traffic": 0, "included_traffic": 21_990_232_555_520_u64,
        "protection": {"delete": server.meta.is_protected, "rebuild": server.is_rebuild_protected},
        "volumes": attached.map(|(id, _)| *id).collect::<Vec<_>>(), "load_balancers": [],
        "placement_group": server.group.and_then(|group| one(state, Kind::PlacementGroup, group)),
    })
}

fn covers(firewall: &Firewall, id: u64, server: &Server) -> bool {
    firewall.applied_to.iter().any(|target| match target {
        Target::Server(server) => *server == id,
        Target::LabelSelector(text) => {
            Selector::parse(text).is_ok_and(|selector| selector.chooses(&server.meta.labels))
        }
    })
}

fn mac(server: u64, network: u64) -> String {
    let [.., a, b] = server.to_be_bytes();
    let [.., c, d] = network.to_be_bytes();
    format!("86:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// The name that an address has, in the domain that is reserved for names that mean nothing.
fn pointer(ip: &PrimaryIp) -> String {
    format!("static.{}.lab.invalid", ip.ip.replace(['.', ':'], "-"))
}

fn of_network(state: &State, id: u64, network: &Network) -> Json {
    let gateway = Range::parse(&network.ip_range).map_or(Ipv4Addr::UNSPECIFIED, Range::gateway).to_string();
    let subnet = |subnet: &super::state::Subnet| {
        json!({
            "type": subnet.kind, "ip_range": subnet.ip_range, "network_zone": subnet.zone, "gateway": gateway,
            "vswitch_id": subnet.vswitch,
        })
    };
    let inside = state.servers.iter().filter(|(_, server)| server.nets.iter().any(|net| net.network == id));
    json!({
        "ip_range": network.ip_range, "subnets": network.subnets.iter().map(subnet).collect::<Vec<_>>(),
        "routes": network.routes, "servers": inside.map(|(id, _)| *id).collect::<Vec<_>>(), "load_balancers": [],
        "expose_routes_to_vswitch": network.is_exposed,
    })
}

fn of_firewall(state: &State, firewall: &Firewall) -> Json {
    let target = |target: &Target| match target {
        Target::Server(id) => json!({"type": "server", "server": {"id": id}}),
        Target::LabelSelector(text) => {
            let selector = Selector::parse(text);
            let chosen =
                |server: &Server| selector.as_ref().is_ok_and(|one| one.chooses(&server.meta.labels));
            let servers = state.servers.iter().filter(|(_, server)| chosen(server));
            let servers: Vec<Json> =
                servers.map(|(id, _)| json!({"type": "server", "server": {"id": id}})).collect();
            json!({"type": "label_selector", "label_selector": {"selector": text}, "applied_to_resources": servers})
        }
    };
    let targets: Vec<Json> = firewall.applied_to.iter().map(target).collect();
    json!({"rules": firewall.rules, "applied_to": targets})
}

fn of_image(image: &Image) -> Json {
    json!({
        "description": image.description, "type": if image.is_backup { "backup" } else { "snapshot" },
        "status": if image.is_ready { "available" } else { "creating" }, "disk_size": image.disk,
        "image_size": image.is_ready.then_some(1.5), "created_from": {"id": image.from, "name": image.from_name},
        "bound_to": image.is_backup.then_some(image.from), "os_flavor": image.origin["os_flavor"],
        "os_version": image.origin["os_version"], "architecture": image.origin["architecture"], "rapid_deploy": false,
        "deleted": null, "deprecated": null,
    })
}

fn of_volume(id: u64, volume: &Volume) -> Json {
    json!({
        "size": volume.size, "server": volume.server, "format": volume.format,
        "location": Location::find(&volume.location).map(Location::view),
        "linux_device": format!("/dev/disk/by-id/scsi-0HC_Volume_{id}"),
        "status": if volume.is_ready { "available" } else { "creating" },
    })
}

fn of_ip(ip: &PrimaryIp) -> Json {
    let place = Location::find(&ip.location);
    let pointers = if ip.is_v6 { json!([]) } else { json!([{"ip": ip.ip, "dns_ptr": pointer(ip)}]) };
    json!({
        "ip": ip.ip, "type": if ip.is_v6 { "ipv6" } else { "ipv4" }, "assignee_id": ip.assignee,
        "assignee_type": "server", "auto_delete": ip.is_auto_deleted, "blocked": false, "dns_ptr": pointers,
        "location": place.map(Location::view), "datacenter": place.map(Location::datacenter),
    })
}

/// An action; how far it is follows from how long it takes.
pub(super) fn action(id: u64, action: &Action, takes: Duration) -> Json {
    let resource = |(kind, id): &(Kind, u64)| json!({"id": id, "type": kind.name()});
    let (status, error) = match &action.course {
        Course::Running => ("running", Json::Null),
        Course::Success => ("success", Json::Null),
        Course::Error(why) => ("error", json!({"code": "action_failed", "message": why})),
    };
    json!({
        "id": id, "command": action.command, "status": status, "error": error, "progress": progress(action, takes),
        "started": time(action.started), "finished": action.finished.map(time),
        "resources": std::iter::once(&action.subject).chain(&action.others).map(resource).collect::<Vec<_>>(),
    })
}

fn progress(action: &Action, takes: Duration) -> u64 {
    let elapsed = Timestamp::now().as_millisecond() - action.started.as_millisecond();
    let elapsed = u128::from(elapsed.max(0).unsigned_abs());
    match action.course {
        Course::Running if action.after.is_some() => 0,
        Course::Running => u64::try_from((elapsed * 100 / takes.as_millis().max(1)).min(95)).unwrap_or(95),
        Course::Success | Course::Error(_) => 100,
    }
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}
