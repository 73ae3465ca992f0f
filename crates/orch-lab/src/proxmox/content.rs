//! Calls about storages and what is on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::call::Call;
use super::drive::place;
use super::lab::Lab;
use super::node::may_see;
use super::reply::{Outcome, Refusal};
use super::settings::ProxmoxStorage;
use super::state::{State, Volume, storage_of};

fn shown(state: &State, storage: &ProxmoxStorage) -> Json {
    let used = state.used(&storage.id);
    let part = Json::from(
        f64::from(u32::try_from(used >> 20).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(storage.bytes >> 20).unwrap_or(u32::MAX).max(1)),
    );
    json!({
        "storage": storage.id, "type": storage.kind, "content": storage.content.join(","), "active": 1, "enabled": 1,
        "shared": 0, "total": storage.bytes, "used": used, "avail": storage.bytes.saturating_sub(used),
        "used_fraction": part,
    })
}

pub(super) fn storages(call: &Call, state: &mut State) -> Outcome {
    let (one, content) = (call.params.get("storage"), call.params.get("content"));
    let seen = call.lab.settings.storages.iter().filter(|storage| may_see(call, state, &storage.id));
    let fits = seen.filter(|storage| one.is_none_or(|one| one == storage.id));
    let fits = fits.filter(|storage| {
        content.is_none_or(|content| content.split(',').any(|content| storage.holds(content)))
    });
    Ok(fits.map(|storage| shown(state, storage)).collect::<Json>().into())
}

/// The storage that the path names, which the caller may do this with.
pub(super) fn storage<'a>(
    call: &'a Call,
    state: &State,
    privileges: &[&str],
) -> Result<&'a ProxmoxStorage, Refusal> {
    let id = call.params.need("storage")?;
    call.need_any(state, &format!("/storage/{id}"), privileges)?;
    let storage = call.lab.settings.storage(id);
    storage.ok_or_else(|| Refusal::died(format!("storage '{id}' does not exist")))
}

const LOOKERS: &[&str] = &["Datastore.Audit", "Datastore.AllocateSpace"];

pub(super) fn status(call: &Call, state: &mut State) -> Outcome {
    Ok(shown(state, storage(call, state, LOOKERS)?).into())
}

fn show_volume(name: &str, volume: &Volume) -> Json {
    let mut shown = json!({
        "volid": name, "content": volume.content, "format": volume.format, "size": volume.bytes, "ctime": volume.made,
    });
    if let Some(owner) = volume.owner {
        shown["vmid"] = owner.into();
    }
    if let Some(parent) = &volume.parent {
        shown["parent"] = parent.as_str().into();
    }
    shown
}

/// The volumes of a storage: those that are known, and the files in its folder.
fn volumes(state: &State, storage: &ProxmoxStorage) -> BTreeMap<String, Volume> {
    let known = state.volumes.iter().filter(|(name, _)| storage_of(name) == storage.id);
    let mut volumes: BTreeMap<String, Volume> =
        known.map(|(name, volume)| (name.clone(), volume.clone())).collect();
    let Some(folder) = &storage.folder else { return volumes };
    for content in storage.content.iter().filter(|content| !["images", "rootdir"].contains(&content.as_str()))
    {
        let files = std::fs::read_dir(folder.join(place(content))).into_iter().flatten().flatten();
        for file in files {
            let name = format!("{}:{content}/{}", storage.id, file.file_name().to_string_lossy());
            let bytes = file.metadata().map_or(0, |data| data.len());
            volumes.entry(name.clone()).or_insert_with(|| Volume::file(&name, bytes));
        }
    }
    volumes
}

pub(super) fn list(call: &Call, state: &mut State) -> Outcome {
    let storage = storage(call, state, LOOKERS)?;
    let (content, vmid) = (call.params.get("content"), call.params.get("vmid"));
    let found = volumes(state, storage).into_iter().filter(|(_, volume)| {
        content.is_none_or(|content| content == volume.content)
            && vmid.is_none_or(|vmid| volume.owner.is_some_and(|owner| owner.to_string() == vmid))
    });
    Ok(found.map(|(name, volume)| show_volume(&name, &volume)).collect::<Json>().into())
}

/// The full name of the volume in the path, which may leave its storage out.
fn named(call: &Call) -> Result<String, Refusal> {
    let (storage, volume) = (call.params.need("storage")?, call.params.need("volume")?);
    Ok(if volume.contains(':') { volume.to_owned() } else { format!("{storage}:{volume}") })
}

pub(super) fn volume(call: &Call, state: &mut State) -> Outcome {
    let storage = storage(call, state, LOOKERS)?;
    let name = named(call)?;
    let volume = volumes(state, storage).remove(&name);
    let volume = volume.ok_or_else(|| Refusal::died(format!("volume '{name}' does not exist")))?;
    let mut shown = show_volume(&name, &volume);
    shown["path"] = format!("/var/lib/vz/{name}").into();
    shown["used"] = volume.bytes.into();
    Ok(shown.into())
}

pub(super) fn remove(call: &Call, state: &mut State) -> Outcome {
    let storage = storage(call, state, &["Datastore.Allocate", "Datastore.AllocateTemplate"])?;
    let name = named(call)?;
    let volume = volumes(state, storage).remove(&name);
    let volume = volume.ok_or_else(|| Refusal::died(format!("volume '{name}' does not exist")))?;
    if let Some(user) =
        state.volumes.iter().find(|(_, other)| other.parent.as_ref() == Some(&name)).map(|(name, _)| name)
    {
        return Err(Refusal::died(format!("base volume '{name}' is still in use (use by '{user}')")));
    }
    let owner = volume.owner.and_then(|owner| Some((owner, state.guests.get(&owner)?)));
    if let Some((owner, _)) = owner.filter(|(_, guest)| guest.drives().any(|(_, drive)| drive.source == name))
    {
        return Err(Refusal::died(format!("cannot remove image, a guest with VMID '{owner}' exists!")));
    }
    let file = storage.folder.as_ref().zip(name.split_once(':').and_then(|(_, rest)| rest.split_once('/')));
    let file = file.map(|(folder, (kind, name))| folder.join(place(kind)).join(name.replace('/', "_")));
    let id = format!("{}@{}", volume.owner.unwrap_or(0), storage.id);
    let work = move |lab: Arc<Lab>, _| async move {
        tokio::time::sleep(lab.settings.timings.config).await;
        lab.files.lock().expect("nobody panics while holding this").remove(&name);
        lab.change(|stock| {
            stock.state.volumes.remove(&name);
            match file.map(std::fs::remove_file) {
                Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
                _ => Ok(()),
            }
        })
    };
    Ok(call.fork(state, "imgdel", &id, work, None).into())
}
