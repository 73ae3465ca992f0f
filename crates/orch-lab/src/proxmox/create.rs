//! Creating a guest: its id is taken at once, its disks and everything else come in a task.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::Call;
use super::config::Order;
use super::drive::{Drive, Stock};
use super::guest::{Guest, Kind};
use super::lab::Lab;
use super::power;
use super::reply::{Outcome, Refusal};
use super::state::{State, seconds, storage_of};
use crate::faults::Fault;

/// Somebody else takes an id just before it would be taken, where that is to happen.
pub(super) fn let_stranger_in(call: &Call, state: &mut State, vmid: u32) {
    if call.strikes(Fault::StrangerTakesId) && !state.guests.contains_key(&vmid) {
        let config =
            BTreeMap::from([("name".to_owned(), "stranger".to_owned()), ("memory".into(), "512".into())]);
        state.guests.insert(vmid, Guest::new(Kind::Qemu, config, ""));
    }
}

/// Demands that the caller may have a guest of this id, by itself or in the pool that is asked for.
pub(super) fn may_allocate(call: &Call, state: &State, vmid: u32) -> Result<(), Refusal> {
    if let Some(pool) = call.params.get("pool") {
        if !state.pools.contains_key(pool) {
            return Err(Refusal::died(format!("no such pool '{pool}'")));
        }
        if call.may_any(state, &format!("/pool/{pool}"), &["VM.Allocate"]) {
            return Ok(());
        }
    }
    call.need(state, &format!("/vms/{vmid}"), &["VM.Allocate"])
}

pub(super) fn create(call: &Call, state: &mut State) -> Outcome {
    let kind = call.kind();
    let vmid = call.params.id("vmid")?;
    may_allocate(call, state, vmid)?;
    let (order, image) = wish(call, state)?;
    order.check(call, state, vmid)?;
    let_stranger_in(call, state, vmid);
    let (noun, node) = (kind.noun(), &call.lab.settings.node);
    if let Some(taken) = state.guests.get(&vmid) {
        let taken = taken.kind.noun();
        return Err(Refusal::died(format!(
            "unable to create {noun} {vmid} - {taken} {vmid} already exists on node '{node}'"
        )));
    }
    let mut guest = Guest::new(kind, BTreeMap::from([("lock".into(), "create".into())]), "");
    guest.image = image;
    guest.keys = call.params.get("ssh-public-keys").unwrap_or_default().lines().map(str::to_owned).collect();
    state.guests.insert(vmid, guest);
    if let Some(pool) = call.params.get("pool").and_then(|pool| state.pools.get_mut(pool)) {
        pool.guests.insert(vmid);
    }
    let starts = call.params.is_on("start");
    let work = move |lab: Arc<Lab>, _| async move { build(&lab, vmid, &order, starts).await };
    let undo = Box::new(move |stock: &mut Stock<'_>, upid: &str| forget(stock, vmid, upid));
    let upid = call.fork(state, &kind.task("create"), &vmid.to_string(), work, Some(undo));
    call.guest_mut(state, vmid)?.made_by.clone_from(&upid);
    Ok(upid.into())
}

/// What is wanted, and what it is made from.
fn wish(call: &Call, state: &mut State) -> Result<(Order, String), Refusal> {
    let mut order = Order::of(call);
    order.sets.remove("lock");
    if order.kind == Kind::Lxc {
        let image = call.params.need("ostemplate")?.to_owned();
        let stock = Stock { state, settings: &call.lab.settings };
        if stock.look(&image).is_none() {
            return Err(Refusal::died(format!("volume '{image}' does not exist")));
        }
        let storage = call.params.get("storage").unwrap_or("local");
        for (key, value) in
            [("rootfs", format!("{storage}:4")), ("arch", "amd64".into()), ("memory", "512".into())]
        {
            order.sets.entry(key.to_owned()).or_insert(value);
        }
        order
            .sets
            .entry("hostname".into())
            .or_insert_with(|| format!("CT{}", call.params.get("vmid").unwrap_or_default()));
        order.sets.entry("swap".into()).or_insert_with(|| "512".into());
        let rootfs = order.sets.get("rootfs").map_or("", String::as_str);
        let stock = Stock { state, settings: &call.lab.settings };
        stock.storage(storage_of(Drive::parse(rootfs).source), "rootdir").map_err(Refusal::died)?;
        return Ok((order, image));
    }
    let drives: Vec<Drive<'_>> = order.sets.values().map(|value| Drive::parse(value)).collect();
    let image = drives.iter().find_map(|drive| drive.get("import-from"));
    let cdrom = || drives.iter().find(|drive| drive.source.contains(":iso/")).map(|drive| drive.source);
    let image = image.or_else(cdrom).unwrap_or_default().to_owned();
    let uuid = uuid::Uuid::new_v4();
    order.sets.entry("smbios1".into()).or_insert_with(|| format!("uuid={uuid}"));
    order.sets.entry("vmgenid".into()).or_insert_with(|| uuid::Uuid::new_v4().to_string());
    order.sets.insert("meta".into(), format!("creation-qemu=10.0.2,ctime={}", seconds()));
    Ok((order, image))
}

async fn build(lab: &Arc<Lab>, vmid: u32, order: &Order, starts: bool) -> Result<(), String> {
    let held = lab.hold(&order.kind.lock_file(vmid), lab.settings.timings.lock).await?;
    tokio::time::sleep(lab.settings.timings.create).await;
    let storages = order.sets.iter().filter(|(key, _)| super::drive::is_drive(key));
    let storage =
        storages.map(|(_, value)| storage_of(Drive::parse(value).source)).find(|storage| !storage.is_empty());
    let named = |why: String| format!("unable to create {} {vmid} - {why}", order.kind.noun());
    let place = |stock: &mut Stock<'_>| order.carry_out(stock, vmid);
    match storage {
        Some(storage) => lab.allocate(storage, place).await.map_err(named)?,
        None => lab.change(place).map_err(named)?,
    }
    let wanted = lab.change(|stock| {
        let guest = stock.state.guests.get_mut(&vmid).ok_or("the configuration is gone")?;
        guest.config.remove("lock");
        Ok(guest.wanted(vmid))
    })?;
    lab.settings.machines.make(&wanted).await.map_err(|trouble| trouble.0)?;
    drop(held);
    if starts { power::begin(lab, order.kind, vmid).await } else { Ok(()) }
}

/// Removes what a task had begun to make, and nothing that somebody else made meanwhile.
pub(super) fn forget(stock: &mut Stock<'_>, vmid: u32, upid: &str) {
    if stock.state.guests.get(&vmid).is_some_and(|guest| guest.made_by == upid && !guest.is_running) {
        if let Some(guest) = stock.state.guests.remove(&vmid) {
            stock.clear(vmid, &guest, true);
        }
        for pool in stock.state.pools.values_mut() {
            pool.guests.remove(&vmid);
        }
    }
}
