//! Machines inside of machines, as they are seen from outside: their ids have the id of the one around them in front.

use orch_model::{Identity, VmidRange};
use orch_plan::{Action, Applied, HostView, Keys, Machine, MachineState};
use orch_run::Order;

use super::inner_reference;

/// How many parts the id of a machine has: `qemu/101`.
const PARTS: usize = 2;

/// The id of something inside of a machine.
pub(super) fn id(outer: &str, inner: &str) -> String {
    format!("{outer}/{inner}")
}

/// The machine around one, and what that one is called inside of it; nothing where it is inside of none.
pub(super) fn split(id: &str) -> Option<(&str, &str)> {
    let (at, _) = id.match_indices('/').nth(PARTS - 1)?;
    Some((&id[..at], &id[at + 1..]))
}

/// A machine as it is seen from outside of the one around it.
pub(super) fn seen_from_outside(machine: &Machine, outer: &Machine) -> Machine {
    let inside = machine.inside.as_ref().map_or_else(|| outer.id.clone(), |inside| id(&outer.id, inside));
    Machine { id: id(&outer.id, &machine.id), inside: Some(inside), ..machine.clone() }
}

/// What stands for everything inside of a machine that cannot be asked: somebody's, for all that is known.
pub(super) fn unseen(outer: &Machine, why: &str) -> Machine {
    Machine {
        id: id(&outer.id, "unseen"),
        name: format!("whatever is in `{}`, since {why}", outer.name),
        marks: None,
        inside: Some(outer.id.clone()),
        state: MachineState::Stopped,
        size: outer.size,
        kind: None,
        image: None,
        vmid: None,
        applied: Applied::Unknown,
        keys: Keys::Unknown,
    }
}

/// Everything inside of a machine, as it is seen from outside.
pub(super) fn view_from_outside(view: HostView, outer: &Machine) -> HostView {
    match view {
        HostView::Seen { machines, abilities } => {
            let machines = machines.iter().map(|machine| seen_from_outside(machine, outer)).collect();
            HostView::Seen { machines, abilities }
        }
        unreachable @ HostView::Unreachable { .. } => unreachable,
    }
}

/// The same order for a machine by what it is called inside.
pub(super) fn with_id(order: &Order, id: &str) -> Order {
    let mut order = order.clone();
    match &mut order.action {
        Action::Adopt { found: machine, .. }
        | Action::Resize { machine, .. }
        | Action::Start { machine }
        | Action::Destroy { machine }
        | Action::Configure { machine: Some(machine), .. } => *machine = inner_reference(machine, id),
        Action::Create { .. } | Action::Configure { machine: None, .. } => {}
    }
    order
}

/// A number that nobody has, always the same for the same node.
pub(super) fn free_number(identity: &Identity, range: VmidRange, taken: &[u32]) -> Option<u32> {
    let count = u64::from(range.last() - range.first()) + 1;
    let start = identity.digest().as_number() % count;
    let numbers = (0..count).filter_map(|step| u32::try_from((start + step) % count).ok());
    numbers.map(|offset| range.first() + offset).find(|number| !taken.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_split_where_the_outermost_machine_ends() {
        assert_eq!(split("qemu/101"), None);
        assert_eq!(split("qemu/101/lxc/7"), Some(("qemu/101", "lxc/7")));
        assert_eq!(split("qemu/101/qemu/7/qemu/9"), Some(("qemu/101", "qemu/7/qemu/9")));
    }
}
