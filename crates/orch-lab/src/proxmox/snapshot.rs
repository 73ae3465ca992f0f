//! Snapshots of a guest: its configuration as it was. What was on its disks is not kept.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::call::Call;
use super::config::not_locked;
use super::guest::{Guest, Snapshot};
use super::lab::Lab;
use super::reply::{Outcome, Refusal};
use super::state::{State, seconds};

pub(super) fn list(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Audit"])?;
    let guest = call.guest(state, vmid)?;
    let kept = guest.snapshots.iter().map(|(name, snapshot)| {
        json!({ "name": name, "description": snapshot.description, "snaptime": snapshot.made, "vmstate": 0 })
    });
    let now = json!({
        "name": "current", "description": "You are here!", "digest": guest.digest(), "running": i32::from(guest.is_running),
    });
    Ok(kept.chain([now]).collect::<Json>().into())
}

pub(super) fn make(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Snapshot"])?;
    let name = call.params.need("snapname")?.to_owned();
    if name == "current" {
        return Err(Refusal::died("unable to use snapshot name 'current' (reserved name)"));
    }
    let description = call.params.get("description").unwrap_or_default().to_owned();
    begin(call, state, vmid, "snapshot", move |guest| {
        if guest.snapshots.contains_key(&name) {
            return Err(format!("snapshot name '{name}' already used"));
        }
        let snapshot = Snapshot { description, made: seconds(), config: guest.config.clone() };
        guest.snapshots.insert(name, snapshot);
        Ok(())
    })
}

pub(super) fn remove(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Snapshot"])?;
    let name = call.params.need("snapname")?.to_owned();
    begin(call, state, vmid, "delsnapshot", move |guest| match guest.snapshots.remove(&name) {
        Some(_) => Ok(()),
        None => Err(format!("snapshot '{name}' does not exist")),
    })
}

pub(super) fn roll_back(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Snapshot", "VM.Snapshot.Rollback"])?;
    let name = call.params.need("snapname")?.to_owned();
    begin(call, state, vmid, "rollback", move |guest| {
        let snapshot =
            guest.snapshots.get(&name).ok_or_else(|| format!("snapshot '{name}' does not exist"))?;
        guest.config = snapshot.config.clone();
        Ok(())
    })
}

fn begin(
    call: &Call,
    state: &mut State,
    vmid: u32,
    verb: &str,
    change: impl FnOnce(&mut Guest) -> Result<(), String> + Send + 'static,
) -> Outcome {
    let kind = call.kind();
    let work = move |lab: Arc<Lab>, _| async move {
        let _held = lab.hold(&kind.lock_file(vmid), lab.settings.timings.lock).await?;
        tokio::time::sleep(lab.settings.timings.config).await;
        lab.change(|stock| {
            let guest =
                stock.state.guests.get_mut(&vmid).ok_or_else(|| format!("VM {vmid} does not exist"))?;
            not_locked(guest)?;
            change(guest)
        })
    };
    Ok(call.fork(state, &kind.task(verb), &vmid.to_string(), work, None).into())
}
