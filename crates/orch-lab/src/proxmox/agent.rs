//! What the guest agent says, and what a container shows of its network.

use std::net::IpAddr;

use serde_json::{Value as Json, json};

use super::call::Call;
use super::guest::Guest;
use super::reply::{Outcome, Refusal};
use super::state::{State, now};
use crate::faults::Fault;

/// Whether the configuration says that there is an agent.
pub(super) fn is_configured(guest: &Guest) -> bool {
    let parts = guest.config.get("agent").into_iter().flat_map(|agent| agent.split(','));
    parts.into_iter().any(|part| part == "1" || part == "enabled=1")
}

/// The guest of a call whose agent answers.
fn listener<'a>(call: &Call, state: &'a State) -> Result<&'a Guest, Refusal> {
    let vmid = call.guest_id(state, &["VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"])?;
    let guest = call.guest(state, vmid)?;
    if !is_configured(guest) {
        return Err(Refusal::died("No QEMU guest agent configured"));
    }
    if !guest.is_running {
        return Err(Refusal::died(format!("VM {vmid} is not running")));
    }
    let silence = u64::try_from(call.lab.settings.timings.agent.as_millis()).unwrap_or(u64::MAX);
    if now() < guest.started.saturating_add(silence) || call.strikes(Fault::AgentSilent) {
        return Err(Refusal::died("QEMU guest agent is not running"));
    }
    Ok(guest)
}

pub(super) fn ping(call: &Call, state: &mut State) -> Outcome {
    listener(call, state)?;
    Ok(json!({ "result": {} }).into())
}

pub(super) fn info(call: &Call, state: &mut State) -> Outcome {
    listener(call, state)?;
    let commands = ["guest-ping", "guest-info", "guest-network-get-interfaces"];
    let commands: Vec<Json> = commands
        .iter()
        .map(|name| json!({ "name": name, "enabled": true, "success-response": true }))
        .collect();
    Ok(json!({ "result": { "version": "10.0.2", "supported_commands": commands } }).into())
}

/// The network as the guest sees it: beside its own card there is a bridge that some program made, which leads nowhere.
pub(super) fn interfaces(call: &Call, state: &mut State) -> Outcome {
    let guest = listener(call, state)?;
    let card = |name: &str, mac: &str, address: &str, kind: &str, prefix: u8| {
        let addresses: Vec<Json> = [address]
            .iter()
            .filter(|address| !address.is_empty())
            .map(|address| json!({ "ip-address": address, "ip-address-type": kind, "prefix": prefix }))
            .collect();
        json!({
            "name": name, "hardware-address": mac, "ip-addresses": addresses,
            "statistics": { "rx-bytes": 0, "tx-bytes": 0, "rx-packets": 0, "tx-packets": 0, "rx-errs": 0, "tx-errs": 0,
                "rx-dropped": 0, "tx-dropped": 0 },
        })
    };
    let (kind, prefix) = match call.address {
        Some(IpAddr::V6(_)) => ("ipv6", 64),
        _ => ("ipv4", 24),
    };
    let own = call.address.map(|address| address.to_string()).unwrap_or_default();
    let mut cards = vec![
        card("lo", "00:00:00:00:00:00", "127.0.0.1", "ipv4", 8),
        card("docker0", "02:42:0a:0b:0c:0d", "172.17.0.1", "ipv4", 16),
    ];
    if let Some(mac) = guest.mac() {
        cards.push(card("eth0", &mac, &own, kind, prefix));
    }
    Ok(json!({ "result": cards }).into())
}

pub(super) fn container_interfaces(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Audit"])?;
    let guest = call.guest(state, vmid)?;
    if !guest.is_running {
        return Ok(Json::Null.into());
    }
    let mut cards = vec![json!({
        "name": "lo", "hwaddr": "00:00:00:00:00:00", "hardware-address": "00:00:00:00:00:00", "inet": "127.0.0.1/8",
        "inet6": "::1/128", "ip-addresses": [{ "ip-address": "127.0.0.1", "ip-address-type": "inet", "prefix": "8" }],
    })];
    if let Some(mac) = guest.mac() {
        let mut card = json!({ "name": "eth0", "hwaddr": mac, "hardware-address": mac, "ip-addresses": [] });
        if let Some(address) = call.address {
            let (name, prefix) = if address.is_ipv6() { ("inet6", 64) } else { ("inet", 24) };
            card[name] = format!("{address}/{prefix}").into();
            let address = address.to_string();
            card["ip-addresses"] =
                json!([{ "ip-address": address, "ip-address-type": name, "prefix": prefix.to_string() }]);
        }
        cards.push(card);
    }
    Ok(Json::Array(cards).into())
}
