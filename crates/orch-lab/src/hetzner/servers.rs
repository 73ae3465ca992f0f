//! How a server is made.

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::body::{Body, needed};
use super::call::{Call, Reply, follow};
use super::catalog::{Location, ServerType};
use super::effect::Effect;
use super::refusal::Refusal;
use super::state::{Kind, Meta, PrimaryIp, Server, State, Status, Target};
use super::{groups, images, ips, networks, view};
use crate::faults::Fault;

/// The largest user data that is taken, in bytes.
const USER_DATA: usize = 32 * 1024;

/// Everything that a server is made with, checked.
struct Plan {
    server: Server,
    networks: Vec<u64>,
    firewalls: Vec<u64>,
    volumes: Vec<u64>,
    is_started: bool,
}

pub(super) fn create(call: &Call<'_>, state: &mut State) -> Reply {
    let plan = plan(call, state)?;
    if state.servers.len() >= call.server_limit {
        return Err(Refusal::limit("server"));
    }
    if call.is_out_of_stock(&plan.server.location) {
        return Err(Refusal::out_of_stock());
    }
    let password = plan.server.keys.is_empty().then(password);
    let id = state.next_id();
    let server = assign_addresses(call.body, state, id, plan.server)?;
    state.servers.insert(id, server);
    for firewall in plan.firewalls {
        if let Some(firewall) = state.firewalls.get_mut(&firewall) {
            firewall.applied_to.push(Target::Server(id));
        }
    }
    let subject = (Kind::Server, id);
    let first = call.begin(state, "create_server", subject, &[], Effect::Create);
    let (mut last, mut next) = (first, Vec::new());
    for network in plan.networks {
        let place = networks::place(state, id, network, None, Vec::new())?;
        last = follow(
            state,
            last,
            "attach_to_network",
            subject,
            &[(Kind::Network, network)],
            Effect::Attach(place),
        );
        next.push(last);
    }
    for volume in plan.volumes {
        let effect = Effect::AttachVolume(id);
        last = follow(state, last, "attach_volume", (Kind::Volume, volume), &[subject], effect);
        next.push(last);
    }
    if plan.is_started {
        next.push(follow(state, last, "start_server", subject, &[], Effect::Start));
    }
    let next: Vec<Json> = next.into_iter().map(|id| call.action(state, id)).collect();
    let server = view::one(state, Kind::Server, id);
    let action = call.action(state, first);
    Ok((201, json!({"server": server, "action": action, "next_actions": next, "root_password": password})))
}

fn plan(call: &Call<'_>, state: &mut State) -> Result<Plan, Refusal> {
    let body = call.body;
    let meta = call.named_meta(state, Kind::Server)?;
    let kind = needed(body.id_or_name("server_type")?, "server_type")?;
    let kind = ServerType::find(&kind)
        .ok_or_else(|| Refusal::invalid("server_type", "there is no such server type"))?;
    let location = location(body, "fsn1")?;
    if !kind.places.contains(&location.name) {
        return Err(Refusal::invalid("server_type", "unsupported location for server type"));
    }
    let image = images::choose(state, &needed(body.id_or_name("image")?, "image")?, kind)?;
    let user_data = body.text("user_data")?.unwrap_or_default().to_owned();
    if user_data.len() > USER_DATA {
        return Err(Refusal::invalid("user_data", "is longer than 32 KiB"));
    }
    let group = body.whole("placement_group")?;
    group.map_or(Ok(()), |group| groups::has_room(state, group))?;
    let networks = known(body.ids("networks")?, "network", |id| state.networks.contains_key(&id))?;
    let volumes = known(body.ids("volumes")?, "volume", |id| {
        state
            .volumes
            .get(&id)
            .is_some_and(|volume| volume.server.is_none() && volume.location == location.name)
    })?;
    let firewalls = body.objects("firewalls")?;
    let firewalls = firewalls.into_iter().map(|one| needed(one.whole("firewall")?, "firewalls"));
    let firewalls =
        known(firewalls.collect::<Result<_, _>>()?, "firewall", |id| state.firewalls.contains_key(&id))?;
    let server = Server {
        keys: keys(state, body.ids_or_names("ssh_keys")?)?,
        is_silent: call.strikes(Fault::AgentSilent),
        user_data,
        group,
        ..plain(meta, kind, location, image)
    };
    let is_started = body.flag("start_after_create")?.unwrap_or(true);
    Ok(Plan { server, networks, firewalls, volumes, is_started })
}

fn plain(meta: Meta, kind: &ServerType, location: &Location, image: Json) -> Server {
    Server {
        meta,
        status: Status::Off,
        kind: kind.name.to_owned(),
        location: location.name.to_owned(),
        image,
        disk: kind.disk,
        keys: Vec::new(),
        user_data: String::new(),
        rebuilt: 0,
        is_rebuild_protected: false,
        has_backups: false,
        ipv4: None,
        ipv6: None,
        nets: Vec::new(),
        group: None,
        is_silent: false,
        revision: 0,
    }
}

/// Somebody else makes a server of this name, which nothing stands behind.
pub(super) fn stranger(state: &mut State, name: &str) {
    let labels = std::collections::BTreeMap::from([("made-by".to_owned(), "a-stranger".to_owned())]);
    let meta = Meta { name: name.to_owned(), labels, created: Timestamp::now(), is_protected: false };
    let (kind, place) = (ServerType::find("cx22"), Location::find("fsn1"));
    let Some((kind, place)) = kind.zip(place).filter(|_| !state.is_taken(Kind::Server, name, None)) else {
        return;
    };
    let Ok(image) = images::choose(state, "debian-13", kind) else { return };
    let server = Server { status: Status::Running, is_silent: true, ..plain(meta, kind, place, image) };
    let id = state.next_id();
    state.servers.insert(id, server);
}

/// The location that a question names, itself or by its datacenter.
pub(super) fn location(body: Body<'_>, default: &str) -> Result<&'static Location, Refusal> {
    let named = body.id_or_name("location")?;
    let datacenter = body.id_or_name("datacenter")?;
    if named.is_some() && datacenter.is_some() {
        return Err(Refusal::invalid("location", "either a location or a datacenter"));
    }
    let found = match datacenter {
        Some(datacenter) => Location::of_datacenter(&datacenter),
        None => Location::find(named.as_deref().unwrap_or(default)),
    };
    found.ok_or_else(|| Refusal::invalid("location", "there is no such location"))
}

fn known(ids: Vec<u64>, what: &str, is_known: impl Fn(u64) -> bool) -> Result<Vec<u64>, Refusal> {
    let missing = ids.iter().find(|id| !is_known(**id)).copied();
    let is_double = ids.iter().enumerate().any(|(place, id)| ids[..place].contains(id));
    if is_double {
        return Err(Refusal::invalid(&format!("{what}s"), format!("a {what} is named twice")));
    }
    missing.map_or(Ok(ids), |id| Err(Refusal::absent(what, id)))
}

fn keys(state: &State, wanted: Vec<String>) -> Result<Vec<String>, Refusal> {
    let find = |wanted: String| {
        let id = wanted.parse().ok();
        let mut known = state.keys.iter();
        let found = known.find(|(known, key)| Some(**known) == id || key.meta.name == wanted);
        found.map(|(_, key)| key.public_key.clone()).ok_or_else(|| Refusal::absent("ssh_key", wanted))
    };
    wanted.into_iter().map(find).collect()
}

/// Gives a server the addresses that it names, or new ones.
fn assign_addresses(body: Body<'_>, state: &mut State, id: u64, server: Server) -> Result<Server, Refusal> {
    let net = body.object("public_net")?;
    let flag = |name| net.map_or(Ok(None), |net| net.flag(name));
    let named = |name| net.map_or(Ok(None), |net| net.whole(name));
    let (ipv4, ipv6) = (flag("enable_ipv4")?.unwrap_or(true), flag("enable_ipv6")?.unwrap_or(true));
    let (named_v4, named_v6) = (named("ipv4")?, named("ipv6")?);
    if !ipv4 && !ipv6 && body.ids("networks")?.is_empty() {
        return Err(Refusal::invalid("public_net", "a server without a public address needs a network"));
    }
    let mut assign = |is_wanted: bool, named: Option<u64>, is_v6: bool| match named {
        _ if !is_wanted => Ok(None),
        Some(ip) => take(state, ip, id, is_v6, &server.location).map(Some),
        None => Ok(Some(ips::make(state, is_v6, &server.location, Some(id)))),
    };
    let (ipv4, ipv6) = (assign(ipv4, named_v4, false)?, assign(ipv6, named_v6, true)?);
    Ok(Server { ipv4, ipv6, ..server })
}

fn take(state: &mut State, ip: u64, server: u64, is_v6: bool, location: &str) -> Result<u64, Refusal> {
    let known: &mut PrimaryIp = state.ips.get_mut(&ip).ok_or_else(|| Refusal::absent("primary_ip", ip))?;
    if known.is_v6 != is_v6 {
        return Err(Refusal::new(422, "primary_ip_version_mismatch", "the primary IP has the wrong version"));
    }
    if known.assignee.is_some() {
        return Err(Refusal::new(
            422,
            "primary_ip_assigned",
            "the primary IP is already assigned to a server",
        ));
    }
    if known.location != location {
        return Err(Refusal::new(
            422,
            "primary_ip_datacenter_mismatch",
            "the primary IP is in another datacenter",
        ));
    }
    known.assignee = Some(server);
    Ok(ip)
}

/// A password for a server that no key opens.
pub(super) fn password() -> String {
    uuid::Uuid::new_v4().simple().to_string().chars().take(20).collect()
}
