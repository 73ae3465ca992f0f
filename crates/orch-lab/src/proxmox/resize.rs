//! Making a disk larger. Smaller is refused.

use std::sync::Arc;

use super::call::Call;
use super::config::not_locked;
use super::drive::{self, Drive};
use super::guest::Kind;
use super::lab::Lab;
use super::reply::{Outcome, Refusal};
use super::state::{State, storage_of};

pub(super) fn resize(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Config.Disk"])?;
    call.skips_lock()?;
    let (kind, disk, text) = (call.kind(), call.params.need("disk")?.to_owned(), call.params.need("size")?);
    let guest = call.guest(state, vmid)?;
    not_locked(guest).map_err(Refusal::died)?;
    let (sign, digits) = text.strip_prefix('+').map_or((false, text), |digits| (true, digits));
    let size = drive::size(digits)
        .ok_or_else(|| Refusal::parameter("size", "value does not match the regex pattern"))?;
    let value =
        guest.config.get(&disk).ok_or_else(|| Refusal::died(format!("disk '{disk}' does not exist")))?;
    let drive = Drive::parse(value);
    if drive.is_cdrom() {
        return Err(Refusal::died("you can't resize a cdrom"));
    }
    let known = state.volumes.get(drive.source).map(|volume| volume.bytes);
    let known = known.ok_or_else(|| Refusal::died(format!("disk '{disk}' has no associated volume")))?;
    let bytes = if sign { known.saturating_add(size) } else { size };
    if bytes < known {
        return Err(Refusal::died("shrinking disks is not supported"));
    }
    let storage = storage_of(drive.source);
    call.need(state, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    let work = move |lab: Arc<Lab>, _| async move { grow(&lab, vmid, kind, &disk, bytes).await };
    Ok(call.fork(state, "resize", &vmid.to_string(), work, None).into())
}

async fn grow(lab: &Lab, vmid: u32, kind: Kind, disk: &str, bytes: u64) -> Result<(), String> {
    let _held = lab.hold(&kind.lock_file(vmid), lab.settings.timings.lock).await?;
    tokio::time::sleep(lab.settings.timings.config).await;
    let size = lab.change(|stock| {
        let gone = || format!("disk '{disk}' does not exist");
        let value = stock
            .state
            .guests
            .get(&vmid)
            .and_then(|guest| guest.config.get(disk))
            .cloned()
            .ok_or_else(gone)?;
        let drive = Drive::parse(&value);
        stock.grow(drive.source, bytes)?;
        let guest = stock.state.guests.get_mut(&vmid).ok_or_else(gone)?;
        guest.config.insert(disk.to_owned(), drive.with(drive.source, bytes));
        Ok(guest.size())
    })?;
    lab.settings.machines.resize(&vmid.to_string(), size).await.map_err(|trouble| trouble.0)
}
