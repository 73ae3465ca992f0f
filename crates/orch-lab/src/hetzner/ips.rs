//! Primary IPs. The addresses come from the blocks for documentation, until the machine behind a server says another.

use jiff::Timestamp;
use serde_json::json;

use super::body::needed;
use super::call::{Call, Reply};
use super::refusal::Refusal;
use super::servers;
use super::state::{Kind, Meta, PrimaryIp, State};
use super::view;

pub(super) fn create(call: &Call<'_>, state: &mut State) -> Reply {
    let meta = call.named_meta(state, Kind::PrimaryIp)?;
    let is_v6 = match needed(call.body.text("type")?, "type")? {
        "ipv4" => false,
        "ipv6" => true,
        _ => return Err(Refusal::invalid("type", "has to be ipv4 or ipv6")),
    };
    if call.body.any("assignee_id").is_some() {
        return Err(Refusal::unsupported());
    }
    let location = servers::location(call.body, "fsn1")?;
    let is_auto_deleted = call.body.flag("auto_delete")?.unwrap_or(false);
    let id = make(state, is_v6, location.name, None);
    if let Some(ip) = state.ips.get_mut(&id) {
        (ip.meta, ip.is_auto_deleted) = (meta, is_auto_deleted);
    }
    Ok((201, json!({"primary_ip": view::one(state, Kind::PrimaryIp, id)})))
}

/// A new address, which goes with the server that it is made for.
pub(super) fn make(state: &mut State, is_v6: bool, location: &str, assignee: Option<u64>) -> u64 {
    let id = state.next_id();
    let ip = if is_v6 {
        format!("2001:db8:{:x}:{:x}::/64", id >> 16, id & 0xffff)
    } else {
        format!("127.203.113.{}", id % 250 + 1)
    };
    let name = format!("primary_ip-{id}");
    let meta = Meta {
        name,
        labels: std::collections::BTreeMap::new(),
        created: Timestamp::now(),
        is_protected: false,
    };
    let is_auto_deleted = assignee.is_some();
    let location = location.to_owned();
    state.ips.insert(id, PrimaryIp { meta, is_v6, ip, location, assignee, is_auto_deleted });
    id
}

pub(super) fn update(call: &Call<'_>, state: &mut State, id: u64) -> Result<(), Refusal> {
    if let (Some(auto_delete), Some(ip)) = (call.body.flag("auto_delete")?, state.ips.get_mut(&id)) {
        ip.is_auto_deleted = auto_delete;
    }
    Ok(())
}

pub(super) fn delete(state: &mut State, id: u64) -> Result<(), Refusal> {
    if state.ips.get(&id).is_some_and(|ip| ip.assignee.is_some()) {
        return Err(Refusal::new(422, "must_be_unassigned", "the primary IP is still assigned"));
    }
    state.ips.remove(&id);
    Ok(())
}
