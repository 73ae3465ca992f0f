//! Removing a guest with its disks.

use std::sync::Arc;

use super::call::Call;
use super::config::not_locked;
use super::guest::Kind;
use super::lab::Lab;
use super::reply::{Outcome, Refusal};
use super::state::State;

/// How a guest is removed.
#[derive(Clone, Copy)]
struct Manner {
    kind: Kind,
    skips_lock: bool,
    /// Also volumes that its configuration does not name.
    is_thorough: bool,
}

pub(super) fn destroy(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Allocate"])?;
    let guest = call.guest(state, vmid)?;
    let (kind, noun) = (guest.kind, guest.kind.noun());
    let skips_lock = call.skips_lock()?;
    if guest.is_set("protection") {
        return Err(Refusal::died(format!("can't remove {noun} {vmid} - protection mode enabled")));
    }
    let is_forced = kind == Kind::Lxc && call.params.is_on("force");
    if guest.is_running && !is_forced {
        return Err(Refusal::died(format!("{noun} {vmid} is running - destroy failed")));
    }
    let own: Vec<&str> = guest.drives().map(|(_, drive)| drive.source).collect();
    let parents = state.volumes.values().filter_map(|volume| volume.parent.as_deref());
    if let Some(base) = parents.into_iter().find(|parent| own.contains(parent)) {
        return Err(Refusal::died(format!("base volume '{base}' is still in use by linked clones")));
    }
    let is_thorough = call.params.is_on("destroy-unreferenced-disks");
    let manner = Manner { kind, skips_lock, is_thorough };
    let work = move |lab: Arc<Lab>, _| async move { remove(&lab, vmid, manner).await };
    Ok(call.fork(state, &kind.task("destroy"), &vmid.to_string(), work, None).into())
}

async fn remove(lab: &Lab, vmid: u32, manner: Manner) -> Result<(), String> {
    let _held = lab.hold(&manner.kind.lock_file(vmid), lab.settings.timings.lock).await?;
    lab.change(|stock| {
        let guest = stock.state.guests.get(&vmid);
        let file = manner.kind.config_file(&stock.settings.node, vmid);
        let guest = guest.ok_or_else(|| format!("Configuration file '{file}' does not exist"))?;
        if manner.skips_lock { Ok(()) } else { not_locked(guest) }
    })?;
    tokio::time::sleep(lab.settings.timings.destroy).await;
    lab.settings.machines.remove(&vmid.to_string()).await.map_err(|trouble| trouble.0)?;
    lab.change(|stock| {
        if let Some(guest) = stock.state.guests.remove(&vmid) {
            stock.clear(vmid, &guest, manner.is_thorough);
        }
        for pool in stock.state.pools.values_mut() {
            pool.guests.remove(&vmid);
        }
        let path = format!("/vms/{vmid}");
        stock.state.acl.retain(|grant| grant.path != path);
        Ok(())
    })
}
