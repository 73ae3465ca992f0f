//! `create`: make what is missing, mend what can be mended in place, make anew only what may be.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use orch_model::{Node, NodeName};

use super::{Decider, Decision, configure, reference, stale};
use crate::action::{Action, MachineRef, MachineSpec};
use crate::differ::differences;
use crate::observed::{Abilities, Machine, MachineState};
use crate::plan::Verdict;

impl Decider<'_> {
    pub(super) fn create(&mut self, node: &Node, abilities: Abilities) -> Decision {
        match *self.machines_of(node) {
            [] => self.create_missing(node),
            [machine] => self.mend(node, machine, abilities),
            [first, second, ..] => Decision::refused(format!(
                "two machines bear its mark (`{}` and `{}`): destroy it, then create it",
                first.id, second.id
            )),
        }
    }

    fn create_missing(&mut self, node: &Node) -> Decision {
        if let Some(why) = self.why_homeless(node) {
            return Decision::refused(why);
        }
        match self.machine_spec(node) {
            Ok(machine) => Decision {
                verdict: Verdict::Create,
                why: Vec::new(),
                down: Vec::new(),
                up: made(Action::Create { machine }, node),
            },
            Err(why) => Decision::refused(why),
        }
    }

    /// Why the node cannot be made inside its parent, if so: that is not brought up and does not run already.
    fn why_homeless(&self, node: &Node) -> Option<String> {
        let parent = node.parent.as_ref()?;
        match self.verdict_of(parent) {
            Some(Verdict::Refused) => return Some(format!("its parent `{parent}` is refused")),
            Some(_) => return None,
            None => {}
        }
        match *self.machines_named(&node.identity.host, parent) {
            [] => Some(format!("its parent `{parent}` does not exist, and is not selected")),
            [machine] if machine.state == MachineState::Running => None,
            [_] => Some(format!("its parent `{parent}` does not run")),
            [..] => Some(format!("several machines bear the mark of its parent `{parent}`")),
        }
    }

    /// Decides about a machine that is there.
    fn mend(&mut self, node: &Node, machine: &Machine, abilities: Abilities) -> Decision {
        let Some(found) = reference(machine) else {
            return Decision::refused("it lost its mark");
        };
        if let Some(parent) = node.parent.as_ref().filter(|parent| self.is_made_anew(parent)) {
            let why = Vec::from([format!("its parent `{parent}` is made anew")]);
            return self.replace(node, machine, found, why);
        }
        // Finishing a machine gives it its size, and never another image, type or VMID.
        let is_partial = machine.state == MachineState::Partial;
        let abilities = if is_partial { Abilities::ALL } else { abilities };
        let differences = differences(node, machine, abilities);
        let in_place = differences.iter().all(|difference| difference.in_place);
        let why: Vec<String> = differences.into_iter().map(|difference| difference.what).collect();
        match (in_place, is_partial) {
            (false, _) if self.goal.replace => self.replace(node, machine, found, why),
            (false, true) => Decision::refused(format!(
                "an interrupted run made part of it differently ({}); this needs --replace",
                why.join(", ")
            )),
            (true, true) => adopt(node, machine, found),
            (true, false) => mend_in_place(node, machine, &found, abilities, why),
            (false, false) => Decision {
                verdict: Verdict::NeedsReplace,
                ..mend_in_place(node, machine, &found, abilities, why)
            },
        }
    }

    fn is_made_anew(&self, parent: &NodeName) -> bool {
        self.verdict_of(parent) == Some(Verdict::Replace)
    }

    /// What was decided for a node before this one, where the command is about it.
    fn verdict_of(&self, node: &NodeName) -> Option<Verdict> {
        self.decided.get(node).map(|(_, verdict)| *verdict)
    }

    fn replace(&mut self, node: &Node, old: &Machine, found: MachineRef, why: Vec<String>) -> Decision {
        if let Some(homeless) = self.why_homeless(node) {
            return Decision::refused(homeless);
        }
        // The old machine is gone by the time the new one is made: its name and VMID are free again, for this node.
        match self.names.vmid(node, old.vmid) {
            Ok(vmid) => {
                let machine = MachineSpec { name: found.name.clone(), vmid, ..unnamed_spec(node) };
                Decision {
                    verdict: Verdict::Replace,
                    why,
                    down: Vec::from([Action::Destroy { machine: found }]),
                    up: made(Action::Create { machine }, node),
                }
            }
            Err(why) => Decision::refused(why),
        }
    }

    fn machine_spec(&mut self, node: &Node) -> Result<MachineSpec, String> {
        let vmid = self.names.vmid(node, None)?;
        let name = self.names.name(&node.identity)?;
        Ok(MachineSpec { name, vmid, ..unnamed_spec(node) })
    }
}

/// Mends what can be mended without making the machine anew.
fn mend_in_place(
    node: &Node,
    machine: &Machine,
    found: &MachineRef,
    abilities: Abilities,
    mut why: Vec<String>,
) -> Decision {
    let mut up = Vec::new();
    let to = abilities.reachable(machine.size, node.size);
    if machine.size != to {
        up.push(Action::Resize { machine: found.clone(), from: machine.size, to });
    }
    if machine.state == MachineState::Stopped {
        why.push("stopped".to_owned());
        up.push(Action::Start { machine: found.clone() });
    }
    if let Some(reason) = stale(node, machine) {
        why.push(reason.to_owned());
        up.extend(configure(node, reference(machine)));
    }
    let verdict = if up.is_empty() { Verdict::Unchanged } else { Verdict::Change };
    Decision { verdict, why, down: Vec::new(), up }
}

fn adopt(node: &Node, machine: &Machine, found: MachineRef) -> Decision {
    let spec = MachineSpec { vmid: machine.vmid, name: machine.name.clone(), ..unnamed_spec(node) };
    Decision {
        verdict: Verdict::Change,
        why: Vec::from(["an interrupted run began to make it".to_owned()]),
        down: Vec::new(),
        up: made(Action::Adopt { found, machine: spec }, node),
    }
}

/// What brings a machine up that is new: made, then configured.
fn made(first: Action, node: &Node) -> Vec<Action> {
    core::iter::once(first).chain(configure(node, None)).collect()
}

/// What a machine is to be, but for its name and VMID.
fn unnamed_spec(node: &Node) -> MachineSpec {
    MachineSpec {
        name: String::new(),
        kind: node.kind,
        image: node.image.clone(),
        size: node.size,
        vmid: None,
        parent: node.parent.clone(),
    }
}
