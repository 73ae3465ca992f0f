//! Placement groups: servers that do not stand on the same computer.

use serde_json::json;

use super::body::needed;
use super::call::{Call, Reply};
use super::effect::Effect;
use super::refusal::Refusal;
use super::state::{Kind, PlacementGroup, State};
use super::view;

/// How many servers a group can spread.
const ROOM: usize = 10;

pub(super) fn create(call: &Call<'_>, state: &mut State) -> Reply {
    let meta = call.named_meta(state, Kind::PlacementGroup)?;
    if needed(call.body.text("type")?, "type")? != "spread" {
        return Err(Refusal::invalid("type", "has to be spread"));
    }
    let id = state.next_id();
    state.groups.insert(id, PlacementGroup { meta });
    Ok((201, json!({"placement_group": view::one(state, Kind::PlacementGroup, id), "action": null})))
}

/// Whether one more server can be in a group, those counted that are about to be.
pub(super) fn has_room(state: &State, group: u64) -> Result<(), Refusal> {
    if !state.groups.contains_key(&group) {
        return Err(Refusal::absent("placement_group", group));
    }
    let coming =
        state.actions.values().filter(|action| action.is_running() && action.effect == Effect::Join(group));
    let has_room = state.members(group).len() + coming.count() < ROOM;
    has_room.then_some(()).ok_or_else(|| Refusal::new(409, "placement_error", "the placement group is full"))
}

pub(super) fn delete(state: &mut State, id: u64) -> Result<(), Refusal> {
    if !state.members(id).is_empty() {
        return Err(Refusal::in_use("placement_group"));
    }
    state.groups.remove(&id);
    Ok(())
}
