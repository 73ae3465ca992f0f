//! Whether an action has come true, from a fresh look at the host. "Done" is said only after this.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use orch_model::{Identity, SiteName};
use uuid::Uuid;

use crate::action::Action;
use crate::observed::{Applied, HostView, Machine, MachineState};

/// Why an action cannot be called done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unconfirmed(pub String);

/// Whether `action` on the node `identity` has come true. `uuid` is the mark of the node's machine.
pub fn confirm(
    action: &Action,
    site: &SiteName,
    identity: &Identity,
    uuid: Uuid,
    view: &HostView,
) -> Result<(), Unconfirmed> {
    if let HostView::Unreachable { why } = view {
        return Err(Unconfirmed(format!("host `{}` cannot be looked at: {why}", identity.host)));
    }
    let mut bearing = view.machines().iter().filter(|machine| {
        machine.marks.as_ref().is_some_and(|marks| marks.uuid == uuid && marks.is_of(site, identity))
    });
    if let Action::Destroy { machine: gone } = action {
        // A machine that was copied by hand bears the same mark; it is destroyed by an action of its own.
        return match bearing.find(|machine| machine.id == gone.id) {
            None => Ok(()),
            Some(machine) => Err(Unconfirmed(format!("machine `{}` is still there", machine.id))),
        };
    }
    let Some(machine) = bearing.next() else {
        return Err(Unconfirmed("no machine bears its mark".to_owned()));
    };
    if bearing.next().is_some() {
        return Err(Unconfirmed("two machines bear its mark".to_owned()));
    }
    as_wanted(action, machine).map_err(Unconfirmed)
}

fn as_wanted(action: &Action, machine: &Machine) -> Result<(), String> {
    if machine.state != MachineState::Running && !matches!(action, Action::Resize { .. }) {
        return Err(format!("machine `{}` does not run", machine.id));
    }
    let size = match action {
        Action::Create { machine } | Action::Adopt { machine, .. } => Some(machine.size),
        Action::Resize { to, .. } => Some(*to),
        _ => None,
    };
    if size.is_some_and(|size| size != machine.size) {
        return Err(format!("machine `{}` has another size", machine.id));
    }
    match (action, machine.applied) {
        (Action::Configure { config, .. }, Applied::Digest(applied)) if applied != config.digest() => {
            Err(format!("machine `{}` has another configuration", machine.id))
        }
        (Action::Configure { .. }, Applied::Never) => {
            Err(format!("machine `{}` has no configuration", machine.id))
        }
        (Action::Configure { .. }, _) if machine.keys.are_awaited() => {
            Err(format!("machine `{}` is not known by its own keys yet", machine.id))
        }
        _ => Ok(()),
    }
}
