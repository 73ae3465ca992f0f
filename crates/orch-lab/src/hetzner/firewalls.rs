//! Firewalls: their rules, and what they are applied to. They keep nobody out here.

use std::net::IpAddr;

use serde_json::{Value as Json, json};

use super::body::{Body, needed};
use super::call::{Call, Reply};
use super::effect::Effect;
use super::labels::Selector;
use super::refusal::Refusal;
use super::state::{Firewall, Kind, State, Target};
use super::view;

/// How many rules a firewall can have.
const RULES: usize = 50;

pub(super) fn create(call: &Call<'_>, state: &mut State) -> Reply {
    let meta = call.named_meta(state, Kind::Firewall)?;
    let rules = rules(call.body)?;
    let targets = targets(call.body, "apply_to")?;
    if let Some(missing) = targets.iter().find(|target| !is_there(state, target)) {
        return Err(Refusal::new(422, "firewall_resource_not_found", format!("{} not found", name(missing))));
    }
    let is_double = targets.iter().enumerate().any(|(place, target)| targets[..place].contains(target));
    if is_double {
        return Err(Refusal::new(422, "server_already_added", "a server is named more than once"));
    }
    let id = state.next_id();
    let first = rules.clone();
    state.firewalls.insert(id, Firewall { meta, rules, applied_to: Vec::new() });
    let mut actions =
        vec![call.begin(state, "set_firewall_rules", (Kind::Firewall, id), &[], Effect::Rules(first))];
    actions.extend(begin_all(call, state, id, targets, "apply_firewall", Effect::Apply));
    let actions: Vec<Json> = actions.into_iter().map(|id| call.action(state, id)).collect();
    Ok((201, json!({"firewall": view::one(state, Kind::Firewall, id), "actions": actions})))
}

pub(super) fn order(call: &Call<'_>, state: &mut State, id: u64, command: &str) -> Reply {
    let firewall = state.firewalls.get(&id).cloned().ok_or_else(|| Refusal::absent("firewall", id))?;
    let actions = match command {
        "set_rules" => {
            let rules = rules(call.body)?;
            let of = firewall.applied_to.iter().filter_map(server);
            let others: Vec<(Kind, u64)> = of.map(|id| (Kind::Server, id)).collect();
            vec![call.begin(state, "set_firewall_rules", (Kind::Firewall, id), &others, Effect::Rules(rules))]
        }
        "apply_to_resources" => {
            let targets = targets(call.body, "apply_to")?;
            check_all_there(state, &targets)?;
            if targets.iter().any(|target| firewall.applied_to.contains(target)) {
                let message = "the firewall is already applied to a resource";
                return Err(Refusal::new(422, "firewall_already_applied", message));
            }
            begin_all(call, state, id, targets, "apply_firewall", Effect::Apply)
        }
        "remove_from_resources" => {
            let targets = targets(call.body, "remove_from")?;
            check_all_there(state, &targets)?;
            if targets.iter().any(|target| !firewall.applied_to.contains(target)) {
                let message = "the firewall is not applied to a resource";
                return Err(Refusal::new(422, "firewall_already_removed", message));
            }
            begin_all(call, state, id, targets, "remove_firewall", Effect::Unapply)
        }
        _ => return Err(Refusal::no_such_path()),
    };
    let actions: Vec<Json> = actions.into_iter().map(|id| call.action(state, id)).collect();
    Ok((201, json!({ "actions": actions })))
}

pub(super) fn delete(state: &mut State, id: u64) -> Result<(), Refusal> {
    let is_used = state.firewalls.get(&id).is_some_and(|firewall| !firewall.applied_to.is_empty());
    if is_used {
        return Err(Refusal::in_use("firewall"));
    }
    state.firewalls.remove(&id);
    Ok(())
}

fn begin_all(
    call: &Call<'_>,
    state: &mut State,
    id: u64,
    targets: Vec<Target>,
    command: &str,
    effect: impl Fn(Target) -> Effect,
) -> Vec<u64> {
    let mut begin = |target: Target| {
        let others: Vec<(Kind, u64)> = server(&target).map(|id| (Kind::Server, id)).into_iter().collect();
        call.begin(state, command, (Kind::Firewall, id), &others, effect(target))
    };
    targets.into_iter().map(&mut begin).collect()
}

const fn server(target: &Target) -> Option<u64> {
    match target {
        Target::Server(id) => Some(*id),
        Target::LabelSelector(_) => None,
    }
}

fn name(target: &Target) -> String {
    match target {
        Target::Server(id) => format!("server with ID '{id}'"),
        Target::LabelSelector(text) => format!("label selector '{text}'"),
    }
}

fn is_there(state: &State, target: &Target) -> bool {
    server(target).is_none_or(|id| state.servers.contains_key(&id))
}

fn check_all_there(state: &State, targets: &[Target]) -> Result<(), Refusal> {
    let missing = targets.iter().find(|target| !is_there(state, target));
    let refusal =
        |target| Refusal::new(404, "firewall_resource_not_found", format!("{} not found", name(target)));
    missing.map_or(Ok(()), |target| Err(refusal(target)))
}

fn targets(body: Body<'_>, field: &str) -> Result<Vec<Target>, Refusal> {
    let target = |one: Body<'_>| match needed(one.text("type")?, field)? {
        "server" => {
            let server = needed(one.object("server")?, field)?;
            Ok(Target::Server(needed(server.whole("id")?, field)?))
        }
        "label_selector" => {
            let selector = needed(one.object("label_selector")?, field)?;
            let text = needed(selector.text("selector")?, field)?;
            Selector::parse(text).map_err(|why| Refusal::invalid(field, why))?;
            Ok(Target::LabelSelector(text.to_owned()))
        }
        _ => Err(Refusal::invalid(field, "has to be of the type server or label_selector")),
    };
    body.objects(field)?.into_iter().map(target).collect()
}

fn rules(body: Body<'_>) -> Result<Vec<Json>, Refusal> {
    let given = body.objects("rules")?;
    if given.len() > RULES {
        return Err(Refusal::invalid("rules", "there are more than 50 rules"));
    }
    given.into_iter().map(rule).collect()
}

fn rule(given: Body<'_>) -> Result<Json, Refusal> {
    let wrong = |why: &str| Refusal::invalid("rules", why);
    let direction = needed(given.text("direction")?, "rules")?;
    let protocol = needed(given.text("protocol")?, "rules")?;
    let port = given.text("port")?;
    let (sources, destinations) = (given.texts("source_ips")?, given.texts("destination_ips")?);
    if !["in", "out"].contains(&direction) || !["tcp", "udp", "icmp", "esp", "gre"].contains(&protocol) {
        return Err(wrong("there is no such direction or protocol"));
    }
    let has_ports = ["tcp", "udp"].contains(&protocol);
    if has_ports != port.is_some() || port.is_some_and(|port| !is_port(port)) {
        return Err(wrong("tcp and udp need a port, and others have none"));
    }
    let (needed_ips, other_ips) =
        if direction == "in" { (&sources, &destinations) } else { (&destinations, &sources) };
    if needed_ips.is_empty() || !other_ips.is_empty() {
        return Err(wrong("a rule has sources for what comes in, and destinations for what goes out"));
    }
    if !needed_ips.iter().all(|ip| is_network(ip)) {
        return Err(wrong("an address is no network in CIDR notation"));
    }
    Ok(json!({
        "direction": direction, "protocol": protocol, "port": port, "source_ips": sources,
        "destination_ips": destinations, "description": given.text("description")?,
    }))
}

fn is_port(text: &str) -> bool {
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    match text.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)).is_some_and(|(first, last)| first <= last),
        None => text == "any" || number(text).is_some(),
    }
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    bits.parse::<u8>().is_ok_and(|bits| bits <= if address.is_ipv4() { 32 } else { 128 })
}
