//! Calls about the whole cluster: what there is, and which id is free.

use serde_json::{Value as Json, json};

use super::call::Call;
use super::node;
use super::reply::{Outcome, Refusal};
use super::state::State;
use super::status;

pub(super) fn version(_: &Call, _: &mut State) -> Outcome {
    Ok(json!({ "version": "9.0.3", "release": "9.0", "repoid": "025864202ebb6109" }).into())
}

/// The lowest id that is free. It is not kept for whoever asked.
pub(super) fn next_id(call: &Call, state: &mut State) -> Outcome {
    if call.params.get("vmid").is_some() {
        let vmid = call.params.id("vmid")?;
        if state.guests.contains_key(&vmid) {
            return Err(Refusal::parameter("vmid", format!("VM {vmid} already exists")));
        }
        return Ok(vmid.to_string().into());
    }
    let free = (100..1_000_000).find(|vmid| !state.guests.contains_key(vmid));
    let free = free.ok_or_else(|| Refusal::died("unable to get any free VMID in range [100, 1000000]"))?;
    Ok(free.to_string().into())
}

pub(super) fn status(call: &Call, _: &mut State) -> Outcome {
    let node = &call.lab.settings.node;
    Ok(json!([{
        "type": "node", "id": format!("node/{node}"), "name": node, "nodeid": 0, "ip": "127.0.0.1", "local": 1,
        "online": 1, "level": "",
    }])
    .into())
}

pub(super) fn resources(call: &Call, state: &mut State) -> Outcome {
    let wanted = call.params.get("type");
    if let Some(kind) = wanted.filter(|kind| !["vm", "storage", "node", "sdn"].contains(kind)) {
        let why = format!("value '{kind}' does not have a value in the enumeration 'vm, storage, node, sdn'");
        return Err(Refusal::parameter("type", why));
    }
    let wants = |kind: &str| wanted.is_none_or(|wanted| wanted == kind);
    let mut shown: Vec<Json> = Vec::new();
    if wants("vm") {
        let seen = state
            .guests
            .iter()
            .filter(|(vmid, _)| call.may_any(state, &format!("/vms/{vmid}"), &["VM.Audit"]));
        shown.extend(seen.map(|(vmid, guest)| status::resource(call, state, *vmid, guest)));
    }
    if wants("node") {
        shown.push(node::summary(call, state));
    }
    if wants("storage") {
        let settings = &call.lab.settings;
        let seen = settings.storages.iter().filter(|storage| node::may_see(call, state, &storage.id));
        shown.extend(seen.map(|storage| {
            json!({
                "id": format!("storage/{}/{}", settings.node, storage.id), "type": "storage", "node": settings.node,
                "storage": storage.id, "plugintype": storage.kind, "status": "available", "shared": 0,
                "content": storage.content.join(","), "disk": state.used(&storage.id), "maxdisk": storage.bytes,
            })
        }));
    }
    if wants("sdn") {
        let node = &call.lab.settings.node;
        shown.push(json!({
            "id": format!("sdn/{node}/localnetwork"), "type": "sdn", "node": node, "sdn": "localnetwork", "status": "ok",
        }));
    }
    Ok(Json::Array(shown).into())
}
