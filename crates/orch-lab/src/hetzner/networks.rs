//! Networks with their subnets and routes, and the places that servers have in them. No packet ever goes through one.

use std::net::Ipv4Addr;

use serde_json::json;

use super::body::{Body, needed};
use super::call::{Call, Reply};
use super::catalog::{LOCATIONS, Location};
use super::effect::Effect;
use super::range::Range;
use super::refusal::Refusal;
use super::state::{Kind, Network, PrivateNet, Route, State, Subnet};
use super::view;

pub(super) fn create(call: &Call<'_>, state: &mut State) -> Reply {
    let meta = call.named_meta(state, Kind::Network)?;
    let range = private(needed(call.body.text("ip_range")?, "ip_range")?)?;
    let mut network = Network {
        meta,
        ip_range: range.to_string(),
        subnets: Vec::new(),
        routes: Vec::new(),
        is_exposed: call.body.flag("expose_routes_to_vswitch")?.unwrap_or(false),
    };
    for wanted in call.body.objects("subnets")? {
        let subnet = subnet(&network, wanted)?;
        network.subnets.push(subnet);
    }
    for wanted in call.body.objects("routes")? {
        let route = route(&network, wanted)?;
        network.routes.push(route);
    }
    let id = state.next_id();
    state.networks.insert(id, network);
    Ok((201, json!({"network": view::one(state, Kind::Network, id)})))
}

pub(super) fn order(call: &Call<'_>, state: &mut State, id: u64, command: &str) -> Reply {
    let network = state.networks.get(&id).ok_or_else(|| Refusal::absent("network", id))?;
    let effect = match command {
        "add_subnet" => Effect::AddSubnet(subnet(network, call.body)?),
        "delete_subnet" => {
            let range = needed(call.body.text("ip_range")?, "ip_range")?;
            let is_known = network.subnets.iter().any(|subnet| subnet.ip_range == range);
            if !is_known {
                return Err(Refusal::new(404, "not_found", format!("subnet '{range}' not found")));
            }
            let places = Range::parse(range)
                .into_iter()
                .flat_map(|range| taken(state, id).into_iter().map(move |ip| (range, ip)));
            if places.into_iter().any(|(range, ip)| range.holds(ip)) {
                return Err(Refusal::in_use("subnet"));
            }
            Effect::RemoveSubnet(range.to_owned())
        }
        "add_route" => Effect::AddRoute(route(network, call.body)?),
        "delete_route" => {
            let route = read_route(call.body)?;
            let is_known = network.routes.contains(&route);
            let effect = is_known.then_some(Effect::RemoveRoute(route));
            effect.ok_or_else(|| Refusal::new(404, "not_found", "route not found"))?
        }
        "change_ip_range" => {
            let range = private(needed(call.body.text("ip_range")?, "ip_range")?)?;
            let subnets = network.subnets.iter().filter_map(|subnet| Range::parse(&subnet.ip_range));
            if subnets.into_iter().any(|subnet| !range.contains(subnet)) {
                return Err(Refusal::invalid("ip_range", "does not hold the subnets"));
            }
            Effect::Widen(range.to_string())
        }
        _ => return Err(Refusal::no_such_path()),
    };
    let action = call.begin(state, command, (Kind::Network, id), &[], effect);
    Ok(call.ordered(state, action))
}

pub(super) fn update(call: &Call<'_>, state: &mut State, id: u64) -> Result<(), Refusal> {
    if let (Some(is_exposed), Some(network)) =
        (call.body.flag("expose_routes_to_vswitch")?, state.networks.get_mut(&id))
    {
        network.is_exposed = is_exposed;
    }
    Ok(())
}

/// Deletes a network; servers in it are in it no longer.
pub(super) fn delete(state: &mut State, id: u64) {
    state.networks.remove(&id);
    for server in state.servers.values_mut() {
        server.nets.retain(|net| net.network != id);
    }
}

/// A place for a server in a network: the address that it wants, or the first that is free.
pub(super) fn place(
    state: &State,
    server: u64,
    network: u64,
    wanted: Option<&str>,
    alias_ips: Vec<String>,
) -> Result<PrivateNet, Refusal> {
    let known = state.networks.get(&network).ok_or_else(|| Refusal::absent("network", network))?;
    let server = state.servers.get(&server).ok_or_else(|| Refusal::absent("server", server))?;
    if server.nets.iter().any(|net| net.network == network) {
        return Err(Refusal::new(
            422,
            "server_already_attached",
            "the server is already attached to the network",
        ));
    }
    let overlaps = |other: u64| {
        let other = state.networks.get(&other).and_then(|network| Range::parse(&network.ip_range));
        other.zip(Range::parse(&known.ip_range)).is_some_and(|(other, range)| other.overlaps(range))
    };
    if server.nets.iter().any(|net| overlaps(net.network)) {
        return Err(Refusal::new(
            422,
            "networks_overlap",
            "the network overlaps with one that the server is in",
        ));
    }
    let zone = Location::find(&server.location).map_or("", |place| place.zone);
    let subnets = known.subnets.iter().filter(|subnet| subnet.zone == zone && subnet.kind != "vswitch");
    let subnets: Vec<Range> = subnets.filter_map(|subnet| Range::parse(&subnet.ip_range)).collect();
    let taken = taken(state, network);
    let ip = match wanted {
        Some(wanted) => {
            let ip = wanted.parse().map_err(|_| Refusal::invalid("ip", "is no IPv4 address"))?;
            let is_free =
                subnets.iter().any(|subnet| subnet.hosts().any(|host| host == ip)) && !taken.contains(&ip);
            is_free
                .then_some(ip)
                .ok_or_else(|| Refusal::new(422, "ip_not_available", "the IP is not available"))?
        }
        None => subnets.iter().flat_map(|subnet| subnet.hosts()).find(|ip| !taken.contains(ip)).ok_or_else(
            || Refusal::new(422, "no_subnet_available", "the network has no subnet with a free IP"),
        )?,
    };
    Ok(PrivateNet { network, ip: ip.to_string(), alias_ips })
}

/// The addresses that servers have in a network, or are about to have.
fn taken(state: &State, network: u64) -> Vec<Ipv4Addr> {
    let had = state.servers.values().flat_map(|server| &server.nets);
    let coming =
        state.actions.values().filter(|action| action.is_running()).filter_map(|action| {
            match &action.effect {
                Effect::Attach(net) => Some(net),
                _ => None,
            }
        });
    let here = had.chain(coming).filter(|net| net.network == network);
    here.flat_map(|net| std::iter::once(&net.ip).chain(&net.alias_ips))
        .filter_map(|ip| ip.parse().ok())
        .collect()
}

fn private(text: &str) -> Result<Range, Refusal> {
    let range = Range::parse(text).filter(|range| range.is_private());
    range.ok_or_else(|| Refusal::invalid("ip_range", "is no private range of addresses"))
}

fn subnet(network: &Network, wanted: Body<'_>) -> Result<Subnet, Refusal> {
    let kind = needed(wanted.text("type")?, "type")?.to_owned();
    let zone = needed(wanted.text("network_zone")?, "network_zone")?.to_owned();
    if !["cloud", "server", "vswitch"].contains(&kind.as_str()) {
        return Err(Refusal::invalid("type", "has to be cloud, server or vswitch"));
    }
    if !LOCATIONS.iter().any(|place| place.zone == zone) {
        return Err(Refusal::invalid("network_zone", "there is no such network zone"));
    }
    let whole = private(&network.ip_range)?;
    let others: Vec<Range> =
        network.subnets.iter().filter_map(|subnet| Range::parse(&subnet.ip_range)).collect();
    let is_free = |range: &Range| others.iter().all(|other| !other.overlaps(*range));
    let range = match wanted.text("ip_range")? {
        Some(range) => Some(private(range)?).filter(|range| whole.contains(*range)).filter(is_free),
        None => whole.subnets().find(is_free),
    };
    let range = range
        .ok_or_else(|| Refusal::invalid("ip_range", "lies outside of the network, or on another subnet"))?;
    Ok(Subnet { kind, ip_range: range.to_string(), zone, vswitch: wanted.whole("vswitch_id")? })
}

fn read_route(wanted: Body<'_>) -> Result<Route, Refusal> {
    let destination = needed(wanted.text("destination")?, "destination")?.to_owned();
    let gateway = needed(wanted.text("gateway")?, "gateway")?.to_owned();
    Ok(Route { destination, gateway })
}

fn route(network: &Network, wanted: Body<'_>) -> Result<Route, Refusal> {
    let route = read_route(wanted)?;
    let range = private(&network.ip_range)?;
    if Range::parse(&route.destination).is_none() {
        return Err(Refusal::invalid("destination", "is no range of addresses"));
    }
    if !route.gateway.parse().is_ok_and(|gateway| range.holds(gateway) && gateway != range.gateway()) {
        return Err(Refusal::invalid("gateway", "is no address of the network that could be a gateway"));
    }
    if network.routes.iter().any(|known| known.destination == route.destination) {
        return Err(Refusal::invalid("destination", "there is a route to it already"));
    }
    Ok(route)
}
