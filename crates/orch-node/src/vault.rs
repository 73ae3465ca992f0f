//! The secrets that the node holds: one file on its disk, `/var/lib/orch/secrets.age`, sealed for its own identity.
//!
//! Values are brought sealed, kept sealed, and opened by the process that puts them in place: none passes an argument, a
//! variable, a pipe or a file in clear. Who changes the file holds the right to apply.

use std::collections::BTreeMap;

use orch_model::{Config, KeyName, Parcel, SecretDigest};
use orch_secrets::{Bundle, BundleError};

use crate::error::{ApplyError, in_full};
use crate::keys;
use crate::state::State;
use crate::worker::say;

/// Where the node holds its secrets.
pub(crate) const PATH: &str = "/var/lib/orch/secrets.age";
const NAME: &str = "secrets.age";

/// Whether the node holds any.
pub(crate) fn is_there(state: &State) -> Result<bool, ApplyError> {
    Ok(state.text(NAME)?.is_some())
}

/// Opens what the node holds; an empty bundle where it holds nothing.
pub(crate) fn open(state: &State) -> Result<Bundle, ApplyError> {
    let Some(sealed) = state.text(NAME)? else { return Ok(Bundle::default()) };
    let Some(identity) = keys::identity(state)? else {
        return Err(ApplyError::refused(&state.outside(NAME), "the identity that opens it is not there"));
    };
    Bundle::open(&identity, &sealed).map_err(|error| cannot_open("what this node holds", &error))
}

/// By what the values that the node holds are known. One that cannot be opened is held no more.
pub(crate) fn digests(state: &State) -> Vec<SecretDigest> {
    open_or_begin_anew(state).iter().map(|(_, digest, _)| digest.clone()).collect()
}

/// Takes what was brought, of that only what the configuration asks for, and says what is lacking still. What the node held
/// before stays beside it: until the configuration is in place, a node that starts again needs that.
pub(crate) fn receive(
    state: &State,
    config: &Config,
    parcel: Option<&Parcel>,
) -> Result<Vec<KeyName>, ApplyError> {
    let wanted = wanted(config);
    if wanted.is_empty() && parcel.is_none() {
        return Ok(Vec::new());
    }
    let mut held = open_or_begin_anew(state);
    if let Some(parcel) = parcel {
        let identity = keys::identity(state)?.ok_or_else(no_identity)?;
        let mut brought =
            Bundle::unpack(&identity, parcel).map_err(|error| cannot_open("what was brought", &error))?;
        brought.retain(|name, digest| is_wanted(&wanted, name, digest));
        if brought.iter().any(|(name, digest, value)| held.get(name, digest) != Some(value)) {
            held.extend(brought);
            write(state, &held)?;
        }
    }
    Ok(lacking_of(&wanted, &held))
}

/// The secrets that a configuration asks for and the node does not hold.
pub(crate) fn lacking(state: &State, config: &Config) -> Vec<KeyName> {
    let wanted = wanted(config);
    if wanted.is_empty() { Vec::new() } else { lacking_of(&wanted, &open_or_begin_anew(state)) }
}

/// Forgets what the configuration does not ask for. Not before it was made true: until then the node may have to go back.
pub(crate) fn prune(state: &State, config: &Config) -> Result<(), ApplyError> {
    if !is_there(state)? {
        return Ok(());
    }
    let (wanted, mut held) = (wanted(config), open(state)?);
    let before = held.iter().count();
    held.retain(|name, digest| is_wanted(&wanted, name, digest));
    match held.iter().count() {
        0 => state.remove(NAME),
        left if left == before => Ok(()),
        _ => write(state, &held),
    }
}

/// The secrets that a configuration asks for, each with by what its value is known. Those without are nobody's to bring.
fn wanted(config: &Config) -> BTreeMap<&KeyName, &SecretDigest> {
    let names = config.role.secrets.iter().map(|secret| &secret.name);
    names.filter_map(|name| Some((name, config.secret_digests().get(name)?))).collect()
}

fn is_wanted(wanted: &BTreeMap<&KeyName, &SecretDigest>, name: &KeyName, digest: &SecretDigest) -> bool {
    wanted.get(name) == Some(&digest)
}

fn lacking_of(wanted: &BTreeMap<&KeyName, &SecretDigest>, held: &Bundle) -> Vec<KeyName> {
    let lacking = wanted.iter().filter(|(name, digest)| held.get(name, digest).is_none());
    lacking.map(|(name, _)| (*name).clone()).collect()
}

/// What cannot be opened any more is asked for again: whoever brings secrets has them all.
fn open_or_begin_anew(state: &State) -> Bundle {
    open(state).unwrap_or_else(|error| {
        say(&error.in_full());
        Bundle::default()
    })
}

fn write(state: &State, held: &Bundle) -> Result<(), ApplyError> {
    let identity = keys::identity(state)?.ok_or_else(no_identity)?;
    let sealed = held.seal(&identity.recipient());
    let sealed = sealed.map_err(|error| ApplyError::Impossible(in_full(&error)))?;
    state.put(NAME, &sealed, 0o600)
}

fn no_identity() -> ApplyError {
    ApplyError::Impossible("this node has no identity that secrets could be sealed for".into())
}

fn cannot_open(what: &str, error: &BundleError) -> ApplyError {
    ApplyError::Impossible(format!("{what} of secrets cannot be opened: {}", in_full(error)))
}
