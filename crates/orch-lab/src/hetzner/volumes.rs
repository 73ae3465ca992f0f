//! Volumes, on paper: they come and go and are attached, and no machine has them.

use serde_json::{Value as Json, json};

use super::body::needed;
use super::call::{Call, Reply, follow};
use super::effect::Effect;
use super::refusal::Refusal;
use super::servers;
use super::state::{Kind, State, Volume};
use super::view;

pub(super) fn create(call: &Call<'_>, state: &mut State) -> Reply {
    let meta = call.named_meta(state, Kind::Volume)?;
    let size = needed(call.body.whole("size")?, "size")?;
    if !(10..=10_240).contains(&size) {
        return Err(Refusal::invalid("size", "must be from 10 to 10240"));
    }
    let server = call.body.whole("server")?;
    if server.is_none() && call.body.any("location").is_none() {
        return Err(Refusal::invalid("location", "a volume needs a location or a server"));
    }
    let location = match server {
        Some(id) => state.servers.get(&id).ok_or_else(|| Refusal::absent("server", id))?.location.clone(),
        None => servers::location(call.body, "fsn1")?.name.to_owned(),
    };
    let format = call.body.text("format")?.map(str::to_owned);
    let id = state.next_id();
    state.volumes.insert(id, Volume { meta, size, location, format, server: None, is_ready: false });
    let subject = (Kind::Volume, id);
    let action = call.begin(state, "create_volume", subject, &[], Effect::CreateVolume);
    let next = server.map(|server| {
        follow(
            state,
            action,
            "attach_volume",
            subject,
            &[(Kind::Server, server)],
            Effect::AttachVolume(server),
        )
    });
    let next: Vec<Json> = next.into_iter().map(|id| call.action(state, id)).collect();
    let volume = view::one(state, Kind::Volume, id);
    Ok((201, json!({"volume": volume, "action": call.action(state, action), "next_actions": next})))
}

pub(super) fn order(call: &Call<'_>, state: &mut State, id: u64, command: &str) -> Reply {
    let volume = state.volumes.get(&id).cloned().ok_or_else(|| Refusal::absent("volume", id))?;
    let mut others = Vec::new();
    let effect = match command {
        "attach" => {
            let wanted = needed(call.body.whole("server")?, "server")?;
            let server = state.servers.get(&wanted).ok_or_else(|| Refusal::absent("server", wanted))?;
            if volume.server.is_some() {
                return Err(Refusal::new(422, "volume_already_attached", "the volume is already attached"));
            }
            if server.location != volume.location {
                return Err(Refusal::invalid("server", "the server is in another location"));
            }
            if state.is_locked(Kind::Server, wanted, false) {
                return Err(Refusal::locked("server"));
            }
            others.push((Kind::Server, wanted));
            Effect::AttachVolume(wanted)
        }
        "detach" => {
            let server =
                volume.server.ok_or_else(|| Refusal::invalid("volume", "the volume is not attached"))?;
            others.push((Kind::Server, server));
            Effect::DetachVolume
        }
        "resize" => {
            let size = needed(call.body.whole("size")?, "size")?;
            if size < volume.size || size > 10_240 {
                return Err(Refusal::invalid("size", "a volume only grows, up to 10240"));
            }
            Effect::ResizeVolume(size)
        }
        _ => return Err(Refusal::no_such_path()),
    };
    let action = call.begin(state, &format!("{command}_volume"), (Kind::Volume, id), &others, effect);
    Ok(call.ordered(state, action))
}

pub(super) fn delete(state: &mut State, id: u64) -> Result<(), Refusal> {
    if state.volumes.get(&id).is_some_and(|volume| volume.server.is_some()) {
        return Err(Refusal::in_use("volume"));
    }
    state.volumes.remove(&id);
    Ok(())
}
