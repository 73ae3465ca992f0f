//! The keys that a node makes itself, at the first moment at which somebody could want to know them: the age identity that
//! its secrets are sealed for, and its SSH host key.
//!
//! Nobody else ever has the private halves. The public ones are told to whoever asks, and derived anew each time: what is
//! written down of them is a note of which host key is its own, and no more.

mod host;

use orch_model::{AgeRecipient, NodeKeys};
use orch_secrets::Secret;
use orch_secrets::seal::Identity;

use crate::error::ApplyError;
use crate::node::Node;
use crate::state::State;
use host::Host;

const IDENTITY: &str = "age.key";
const NOTE: &str = "keys.json";
const LOCK: &str = "keys.lock";

/// Makes the keys that are missing, and says what they are. One who comes second finds those of the first.
pub(crate) fn make(node: &Node, state: &State) -> Result<NodeKeys, ApplyError> {
    let _lock = state.lock(LOCK)?;
    make_locked(node, state)
}

/// Has the SSH server show the node's own key, whatever it showed before. May be repeated after a cut at any moment.
pub(crate) fn settle(node: &Node, state: &State) -> Result<NodeKeys, ApplyError> {
    let _lock = state.lock(LOCK)?;
    let keys = make_locked(node, state)?;
    match Host::of(node, state).filter(|_| !keys.settled) {
        Some(host) => {
            host.settle()?;
            make_locked(node, state)
        }
        None => Ok(keys),
    }
}

/// What the keys were when they were last looked at; nothing where they were never made.
pub(crate) fn noted(state: &State) -> Result<Option<NodeKeys>, ApplyError> {
    state.read_json(NOTE)
}

/// What opens the node's secrets; nothing where it was never made.
pub(crate) fn identity(state: &State) -> Result<Option<Identity>, ApplyError> {
    let Some(text) = state.text(IDENTITY)?.map(Secret::new) else { return Ok(None) };
    let read = std::str::from_utf8(text.expose()).ok().and_then(|text| text.parse().ok());
    // Not made anew: what is sealed for the one that was there could never be opened again.
    let broken = || ApplyError::refused(&state.outside(IDENTITY), "it is not an age identity");
    read.map(Some).ok_or_else(broken)
}

fn make_locked(node: &Node, state: &State) -> Result<NodeKeys, ApplyError> {
    let noted = noted(state)?;
    let age = make_identity(state)?;
    let own = noted.as_ref().and_then(|noted| noted.host_key.as_ref());
    let host = Host::of(node, state).map(|host| host.make(own)).transpose()?;
    let settled = host.as_ref().is_none_or(|host| host.is_shown);
    let keys = NodeKeys { age, host_key: host.map(|host| host.public), settled };
    if noted.as_ref() != Some(&keys) {
        state.write_json(NOTE, &keys)?;
    }
    Ok(keys)
}

fn make_identity(state: &State) -> Result<AgeRecipient, ApplyError> {
    let identity = if let Some(identity) = identity(state)? {
        identity
    } else {
        let identity = Identity::generate();
        state.put(IDENTITY, identity.to_secret().expose(), 0o400)?;
        identity
    };
    let recipient = identity.recipient().to_string();
    Ok(recipient.parse().expect("what age calls a recipient is one"))
}
