//! Images: those that are offered, and those that were made from servers.

use serde_json::Value as Json;

use super::call::Call;
use super::catalog::ServerType;
use super::refusal::Refusal;
use super::state::{Kind, State};
use super::view;

/// The image of this id or name for this type of server, as it is shown.
pub(super) fn choose(state: &State, wanted: &str, kind: &ServerType) -> Result<Json, Refusal> {
    let id: Option<u64> = wanted.parse().ok();
    let is_named = |image: &Json| image["name"] == wanted || id.is_some_and(|id| image["id"] == id);
    let named: Vec<Json> = view::all(state, Kind::Image).into_iter().filter(is_named).collect();
    if named.is_empty() {
        return Err(Refusal::invalid("image", "there is no such image"));
    }
    let fitting = named.into_iter().find(|image| image["architecture"] == kind.architecture());
    let image = fitting
        .ok_or_else(|| Refusal::invalid("image", "incompatible with the server type's architecture"))?;
    if image["status"] != "available" {
        return Err(Refusal::new(409, "conflict", "the image is not available yet"));
    }
    if image["disk_size"].as_f64().is_some_and(|size| size > f64::from(kind.disk)) {
        return Err(Refusal::invalid("image", "image disk is bigger than server type disk"));
    }
    Ok(image)
}

pub(super) fn update(call: &Call<'_>, state: &mut State, id: u64) -> Result<(), Refusal> {
    let (description, kind) = (call.body.text("description")?, call.body.text("type")?);
    let Some(image) = state.images.get_mut(&id) else { return Ok(()) };
    if let Some(description) = description {
        description.clone_into(&mut image.description);
    }
    if kind == Some("snapshot") {
        image.is_backup = false;
    }
    Ok(())
}
