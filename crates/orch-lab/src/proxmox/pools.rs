//! Calls about pools of guests and storages.

use serde_json::{Value as Json, json};

use super::call::Call;
use super::reply::{Outcome, Refusal, Reply};
use super::state::{Pool, State};
use super::status;

pub(super) fn list(call: &Call, state: &mut State) -> Outcome {
    if call.params.get("poolid").is_some() {
        return Ok(json!([show(call, state)?.data]).into());
    }
    let seen =
        state.pools.iter().filter(|(id, _)| call.may_any(state, &format!("/pool/{id}"), &["Pool.Audit"]));
    Ok(seen.map(|(id, pool)| json!({ "poolid": id, "comment": pool.comment })).collect::<Json>().into())
}

pub(super) fn show(call: &Call, state: &mut State) -> Outcome {
    let id = call.params.need("poolid")?;
    call.need(state, &format!("/pool/{id}"), &["Pool.Audit"])?;
    let pool = state.pools.get(id).ok_or_else(|| missing(id))?;
    let node = &call.lab.settings.node;
    let guests = pool.guests.iter().filter_map(|vmid| Some((vmid, state.guests.get(vmid)?)));
    let guests = guests.map(|(vmid, guest)| status::resource(call, state, *vmid, guest));
    let storages = pool.storages.iter().map(|storage| {
        json!({ "id": format!("storage/{node}/{storage}"), "type": "storage", "storage": storage, "node": node })
    });
    let members: Vec<Json> = guests.chain(storages).collect();
    Ok(json!({ "poolid": id, "comment": pool.comment, "members": members }).into())
}

pub(super) fn make(call: &Call, state: &mut State) -> Outcome {
    let id = call.params.need("poolid")?;
    call.need(state, &format!("/pool/{id}"), &["Pool.Allocate"])?;
    if state.pools.contains_key(id) {
        return Err(Refusal::died(format!("create pool failed: pool '{id}' already exists")));
    }
    let comment = call.params.get("comment").map(str::to_owned);
    state.pools.insert(id.to_owned(), Pool { comment, ..Pool::default() });
    Ok(Reply::null())
}

pub(super) fn change(call: &Call, state: &mut State) -> Outcome {
    let params = &call.params;
    let id = params.need("poolid")?;
    call.need(state, &format!("/pool/{id}"), &["Pool.Allocate"])?;
    let known: Vec<u32> = state.guests.keys().copied().collect();
    let elsewhere = |vmid: u32| state.pool_of(vmid).filter(|pool| *pool != id).map(str::to_owned);
    let vms =
        params.get("vms").unwrap_or_default().split([',', ';', ' ']).filter_map(|vmid| vmid.parse().ok());
    // An id that nobody has is passed over without a word, as the real one does.
    let vms: Vec<u32> = vms.filter(|vmid| known.contains(vmid)).collect();
    let is_removal = params.is_on("delete");
    for &vmid in &vms {
        if let Some(other) = elsewhere(vmid).filter(|_| !is_removal && !params.is_on("allow-move")) {
            let why = format!("update pool failed: VM {vmid} belongs already to pool '{other}'");
            return Err(Refusal::died(format!("{why} and 'allow-move' is not set")));
        }
    }
    if !state.pools.contains_key(id) {
        return Err(missing(id));
    }
    for pool in state.pools.values_mut() {
        pool.guests.retain(|vmid| !vms.contains(vmid));
    }
    let pool = state.pools.get_mut(id).ok_or_else(|| missing(id))?;
    let storages = params
        .get("storage")
        .unwrap_or_default()
        .split([',', ';', ' '])
        .filter(|storage| !storage.is_empty());
    if is_removal {
        storages.for_each(|storage| {
            pool.storages.remove(storage);
        });
    } else {
        pool.guests.extend(vms);
        pool.storages.extend(storages.map(str::to_owned));
    }
    if let Some(comment) = params.get("comment") {
        pool.comment = Some(comment.to_owned());
    }
    Ok(Reply::null())
}

pub(super) fn remove(call: &Call, state: &mut State) -> Outcome {
    let id = call.params.need("poolid")?;
    call.need(state, &format!("/pool/{id}"), &["Pool.Allocate"])?;
    let pool = state.pools.get(id).ok_or_else(|| missing(id))?;
    if !pool.guests.is_empty() || !pool.storages.is_empty() {
        return Err(Refusal::died(format!("delete pool failed: pool '{id}' is not empty")));
    }
    state.pools.remove(id);
    Ok(Reply::null())
}

fn missing(id: &str) -> Refusal {
    Refusal::died(format!("pool '{id}' does not exist"))
}
