//! What a server can be told.

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::body::needed;
use super::call::{Call, Reply};
use super::catalog::ServerType;
use super::effect::{Effect, settle};
use super::refusal::Refusal;
use super::state::{Image, Kind, Meta, Server, State, Status};
use super::{groups, images, networks, servers, view};

pub(super) fn order(call: &Call<'_>, state: &mut State, id: u64, command: &str) -> Reply {
    let server = state.servers.get(&id).cloned().ok_or_else(|| Refusal::absent("server", id))?;
    let body = call.body;
    let mut others = Vec::new();
    let (name, effect) = match command {
        "poweron" => ("start_server", Effect::Start),
        "poweroff" => ("stop_server", Effect::Stop),
        "shutdown" => ("shutdown_server", Effect::Stop),
        "reboot" => ("reboot_server", Effect::Restart(false)),
        "reset" => ("reset_server", Effect::Restart(true)),
        "change_type" => ("change_server_type", retype(call, &server)?),
        "rebuild" => return rebuild(call, state, id, &server),
        "create_image" => return create_image(call, state, id, &server),
        "change_protection" => (command, protect(call)?),
        "enable_backup" => (command, Effect::Backups(true)),
        "disable_backup" => (command, Effect::Backups(false)),
        "attach_to_network" => {
            let network = needed(body.whole("network")?, "network")?;
            others.push((Kind::Network, network));
            (
                command,
                Effect::Attach(networks::place(
                    state,
                    id,
                    network,
                    body.text("ip")?,
                    body.texts("alias_ips")?,
                )?),
            )
        }
        "detach_from_network" => {
            let network = needed(body.whole("network")?, "network")?;
            others.push((Kind::Network, network));
            let is_there = server.nets.iter().any(|net| net.network == network);
            let effect = is_there.then_some(Effect::Detach(network));
            (command, effect.ok_or_else(|| Refusal::absent("network", network))?)
        }
        "add_to_placement_group" => {
            must_be_off(&server)?;
            let group = needed(body.whole("placement_group")?, "placement_group")?;
            groups::has_room(state, group)?;
            others.push((Kind::PlacementGroup, group));
            (command, Effect::Join(group))
        }
        "remove_from_placement_group" if server.group.is_none() => {
            return Err(Refusal::invalid("placement_group", "the server is in no placement group"));
        }
        "remove_from_placement_group" => (command, Effect::Leave),
        "attach_iso" | "detach_iso" | "enable_rescue" | "disable_rescue" | "change_dns_ptr"
        | "change_alias_ips" | "request_console" | "reset_password" => return Err(Refusal::unsupported()),
        _ => return Err(Refusal::no_such_path()),
    };
    let action = call.begin(state, name, (Kind::Server, id), &others, effect);
    Ok(call.ordered(state, action))
}

/// Deletes a server: it is gone from the project at once, and its machine when the action ends. A deletion that fails or never
/// ends leaves it there.
pub(super) fn delete(call: &Call<'_>, state: &mut State, id: u64) -> (u16, Json) {
    let action = call.begin(state, "delete_server", (Kind::Server, id), &[], Effect::Delete);
    if let Some(deletion) =
        state.actions.get(&action).filter(|action| action.effect == Effect::Delete).cloned()
    {
        settle(state, &deletion);
    }
    (200, json!({"action": call.action(state, action)}))
}

fn must_be_off(server: &Server) -> Result<(), Refusal> {
    let is_off = server.status == Status::Off;
    is_off.then_some(()).ok_or_else(|| Refusal::new(422, "server_not_stopped", "server must be off for this"))
}

fn protect(call: &Call<'_>) -> Result<Effect, Refusal> {
    let (delete, rebuild) = (call.body.flag("delete")?, call.body.flag("rebuild")?);
    // The real API takes no protection that is half of one.
    if delete.zip(rebuild).is_some_and(|(delete, rebuild)| delete != rebuild) {
        return Err(Refusal::invalid("rebuild", "has to be the same as delete"));
    }
    Ok(Effect::Protect(delete, rebuild))
}

fn retype(call: &Call<'_>, server: &Server) -> Result<Effect, Refusal> {
    let wanted = needed(call.body.id_or_name("server_type")?, "server_type")?;
    let grows = needed(call.body.flag("upgrade_disk")?, "upgrade_disk")?;
    let misfit = |why: &str| Refusal::new(422, "invalid_server_type", why);
    let kind = ServerType::find(&wanted).ok_or_else(|| misfit("there is no such server type"))?;
    must_be_off(server)?;
    if kind.name == server.kind {
        return Err(misfit("the server is of this type already"));
    }
    if server.image["architecture"] != kind.architecture() || !kind.places.contains(&server.location.as_str())
    {
        return Err(misfit("the server type does not fit the server"));
    }
    if kind.disk < server.disk {
        return Err(misfit("the disk of the server type is smaller than the server's"));
    }
    if call.is_out_of_stock(&server.location) {
        return Err(Refusal::out_of_stock());
    }
    Ok(Effect::Retype(kind.name.to_owned(), grows))
}

fn rebuild(call: &Call<'_>, state: &mut State, id: u64, server: &Server) -> Reply {
    if server.is_rebuild_protected {
        return Err(Refusal::protected("server", "rebuild"));
    }
    let wanted = needed(call.body.id_or_name("image")?, "image")?;
    let kind = ServerType::find(&server.kind).ok_or_else(|| Refusal::absent("server_type", &server.kind))?;
    let image = images::choose(state, &wanted, kind)?;
    if let (Some(user_data), Some(server)) = (call.body.text("user_data")?, state.servers.get_mut(&id)) {
        user_data.clone_into(&mut server.user_data);
    }
    let action = call.begin(state, "rebuild_server", (Kind::Server, id), &[], Effect::Rebuild(image));
    let password = server.keys.is_empty().then(servers::password);
    Ok((201, json!({"action": call.action(state, action), "root_password": password})))
}

fn create_image(call: &Call<'_>, state: &mut State, id: u64, server: &Server) -> Reply {
    let is_backup = match call.body.text("type")?.unwrap_or("snapshot") {
        "snapshot" => false,
        "backup" if server.has_backups => true,
        "backup" => return Err(Refusal::invalid("type", "backups are not enabled for this server")),
        _ => return Err(Refusal::invalid("type", "has to be snapshot or backup")),
    };
    let labels = call.body.labels()?.unwrap_or_default();
    let description = call.body.text("description")?.unwrap_or(&server.meta.name).to_owned();
    let image = Image {
        meta: Meta { name: String::new(), labels, created: Timestamp::now(), is_protected: false },
        description,
        is_backup,
        is_ready: false,
        from: id,
        from_name: server.meta.name.clone(),
        disk: server.disk,
        origin: server.image.clone(),
    };
    let made = state.next_id();
    state.images.insert(made, image);
    let effect = Effect::Image(made);
    let action = call.begin(state, "create_image", (Kind::Server, id), &[(Kind::Image, made)], effect);
    let image = view::one(state, Kind::Image, made);
    Ok((201, json!({"action": call.action(state, action), "image": image})))
}
