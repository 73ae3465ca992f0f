//! SSH keys.

use serde_json::json;

use super::body::needed;
use super::call::{Call, Reply};
use super::fingerprint;
use super::refusal::Refusal;
use super::state::{Kind, SshKey, State};
use super::view;

pub(super) fn create(call: &Call<'_>, state: &mut State) -> Reply {
    let meta = call.named_meta(state, Kind::SshKey)?;
    let public_key = needed(call.body.text("public_key")?, "public_key")?.trim().to_owned();
    let fingerprint = fingerprint::of(&public_key)
        .ok_or_else(|| Refusal::invalid("public_key", "is no valid public key"))?;
    if state.keys.values().any(|key| key.fingerprint == fingerprint) {
        return Err(Refusal::taken("SSH key", "fingerprint"));
    }
    let id = state.next_id();
    state.keys.insert(id, SshKey { meta, fingerprint, public_key });
    Ok((201, json!({"ssh_key": view::one(state, Kind::SshKey, id)})))
}
