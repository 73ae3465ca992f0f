//! Fleet and observation to plan: what happens to each node, and why.

mod create;
mod inhabitant;
mod leftover;

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use orch_model::{Digest, Fleet, HostName, Node, NodeName, Problems};

use inhabitant::Inhabitant;
use leftover::leftovers;

use crate::action::{Action, MachineRef};
use crate::naming::Names;
use crate::observed::{Applied, HostView, Machine, MachineState, Marks, Observed};
use crate::plan::{Goal, Leftover, NodePlan, OnNixos, Plan, Verb, Verdict};

/// Decides what is to be done to reach `goal`. Fails only where the goal picks nodes that the fleet does not have.
pub fn plan(fleet: &Fleet, observed: &Observed, goal: &Goal) -> Result<Plan, Problems> {
    let machines = ours(fleet, observed);
    let leftovers = leftovers(fleet, &machines);
    let picked = goal.only.pick(fleet, &leftovers_to_name(goal, &leftovers))?;
    let mut decider = Decider {
        fleet,
        observed,
        goal,
        names: Names::taken(fleet, observed),
        machines,
        decided: BTreeMap::new(),
    };
    let mut nodes = decider.nodes(&picked);
    let is_meant =
        |leftover: &Leftover| goal.verb == Verb::Destroy && goal.only.names(&leftover.identity.node);
    let (destroyed, left): (Vec<_>, Vec<_>) = leftovers.into_iter().partition(is_meant);
    nodes.extend(destroyed.into_iter().map(|leftover| decider.destroy_leftover(leftover)));
    Ok(seal(fleet, goal, nodes, left))
}

/// The leftovers that a selection may name: only `destroy` does anything about them.
fn leftovers_to_name<'l>(goal: &Goal, leftovers: &'l [Leftover]) -> Vec<&'l NodeName> {
    let destroyed = leftovers.iter().filter(|_| goal.verb == Verb::Destroy);
    destroyed.map(|leftover| &leftover.identity.node).collect()
}

/// Puts the digest under a plan.
fn seal(fleet: &Fleet, goal: &Goal, nodes: Vec<NodePlan>, leftovers: Vec<Leftover>) -> Plan {
    let mut plan = Plan {
        verb: goal.verb,
        site: fleet.site.clone(),
        manifest: fleet.manifest.clone(),
        hosts: nodes.iter().map(|node| node.identity.host.clone()).collect(),
        on_error: fleet.settings.on_error,
        parallelism: fleet.settings.parallelism,
        timeouts: fleet.settings.timeouts,
        stages: goal.staging.stages(goal.verb, &nodes),
        reboot: goal.reboot,
        nodes,
        leftovers,
        digest: Digest::of_bytes(&[]),
    };
    plan.digest = plan.outline_digest();
    plan
}

/// The machines that bear this site's and this manifest's marks, by host and node.
type Ours<'o> = BTreeMap<&'o HostName, BTreeMap<&'o NodeName, Vec<&'o Machine>>>;

fn ours<'o>(fleet: &Fleet, observed: &'o Observed) -> Ours<'o> {
    let mut ours: Ours<'o> = BTreeMap::new();
    for (host, view) in observed.hosts.iter().filter(|(host, _)| fleet.hosts.contains_key(*host)) {
        for machine in view.machines() {
            if let Some(marks) = machine.marks.as_ref().filter(|marks| is_ours(fleet, host, marks)) {
                ours.entry(host).or_default().entry(&marks.node).or_default().push(machine);
            }
        }
    }
    ours
}

/// Whether a machine on a host belongs to this manifest of this site. Marks that name another host are a stranger's.
fn is_ours(fleet: &Fleet, host: &HostName, marks: &Marks) -> bool {
    marks.site == fleet.site && marks.manifest == fleet.manifest && marks.host == *host
}

struct Decider<'f> {
    fleet: &'f Fleet,
    observed: &'f Observed,
    goal: &'f Goal,
    names: Names<'f>,
    machines: Ours<'f>,
    /// The nodes before this one, parents among them: their places in the plan, and what was decided.
    decided: BTreeMap<&'f NodeName, (usize, Verdict)>,
}

/// What was decided for one node.
struct Decision {
    verdict: Verdict,
    why: Vec<String>,
    down: Vec<Action>,
    up: Vec<Action>,
}

impl Decision {
    const fn unchanged() -> Self {
        Self { verdict: Verdict::Unchanged, why: Vec::new(), down: Vec::new(), up: Vec::new() }
    }

    fn refused(why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Refused, why: Vec::from([why.into()]), down: Vec::new(), up: Vec::new() }
    }
}

impl<'f> Decider<'f> {
    fn nodes(&mut self, picked: &[bool]) -> Vec<NodePlan> {
        let inhabited = self.inhabited(picked);
        let mut nodes = Vec::new();
        for (node, _) in self.fleet.nodes.iter().zip(picked).filter(|(_, picked)| **picked) {
            let decision = self.decide(node, inhabited.get(node.name()).copied());
            let needs = node.parent.iter().chain(node.depends_on.iter());
            let needs: BTreeSet<usize> =
                needs.filter_map(|name| self.decided.get(name)).map(|(place, _)| *place).collect();
            self.decided.insert(node.name(), (nodes.len(), decision.verdict));
            nodes.push(NodePlan {
                identity: node.identity.clone(),
                verdict: decision.verdict,
                why: decision.why,
                needs: needs.into_iter().collect(),
                down: decision.down,
                up: decision.up,
                nixos: self.on_nixos(node),
            });
        }
        nodes
    }

    /// The machine of a node that is there and is to run a NixOS system.
    fn on_nixos(&self, node: &Node) -> Option<OnNixos> {
        let system = node.config.as_ref()?.system()?.clone();
        let [machine] = self.machines_of(node) else { return None };
        let runs = machine.state == MachineState::Running && self.goal.verb != Verb::Destroy;
        let machine = reference(machine).filter(|_| runs)?;
        Some(OnNixos { machine, system, mode: node.mode })
    }

    fn machines_of(&self, node: &Node) -> &[&'f Machine] {
        self.machines_named(&node.identity.host, node.name())
    }

    fn machines_named(&self, host: &HostName, node: &NodeName) -> &[&'f Machine] {
        self.machines.get::<HostName>(host).and_then(|on| on.get::<NodeName>(node)).map_or(&[], Vec::as_slice)
    }

    fn decide(&mut self, node: &'f Node, inhabitant: Option<Inhabitant<'_>>) -> Decision {
        let host = &node.identity.host;
        let abilities = match self.observed.hosts.get(host) {
            None => return Decision::refused(format!("host `{host}` was not looked at")),
            Some(HostView::Unreachable { why }) => {
                return Decision::refused(format!("host `{host}` cannot be looked at: {why}"));
            }
            Some(HostView::Seen { abilities, .. }) => *abilities,
        };
        if let Some(why) = node.unfit.as_ref().filter(|_| self.goal.verb != Verb::Destroy) {
            return Decision::refused(why.clone());
        }
        let decision = match self.goal.verb {
            Verb::Create => self.create(node, abilities),
            Verb::Config => self.config(node),
            Verb::Destroy => self.destroy(node),
        };
        match inhabitant {
            Some(inhabitant) if !decision.down.is_empty() => inhabitant.refusal(node.name()),
            _ => decision,
        }
    }

    fn config(&self, node: &Node) -> Decision {
        let machine = match *self.machines_of(node) {
            [] => return Decision::refused("it does not exist: `create` makes it"),
            [machine] => machine,
            [..] => return Decision::refused("several machines bear its mark: destroy it, then create it"),
        };
        match machine.state {
            MachineState::Stopped => return Decision::refused("it is stopped: `create` starts it"),
            MachineState::Partial => {
                return Decision::refused("an interrupted run began to make it: `create` finishes it");
            }
            MachineState::Running => {}
        }
        match stale(node, machine) {
            None => Decision::unchanged(),
            Some(reason) => Decision {
                verdict: Verdict::Change,
                why: Vec::from([reason.to_owned()]),
                down: Vec::new(),
                up: configure(node, reference(machine)).into_iter().collect(),
            },
        }
    }

    fn destroy(&self, node: &Node) -> Decision {
        let down: Vec<Action> = self
            .machines_of(node)
            .iter()
            .filter_map(|machine| reference(machine))
            .map(|machine| Action::Destroy { machine })
            .collect();
        let why = match down.len() {
            0 => {
                return Decision {
                    why: Vec::from(["it does not exist".to_owned()]),
                    ..Decision::unchanged()
                };
            }
            1 => Vec::new(),
            several => Vec::from([format!("{several} machines bear its mark")]),
        };
        Decision { verdict: Verdict::Destroy, why, down, up: Vec::new() }
    }
}

/// Why a machine's configuration is to be applied, if it is.
fn stale(node: &Node, machine: &Machine) -> Option<&'static str> {
    let config = node.config.as_ref()?;
    match machine.applied {
        // Whoever configured it was cut off before its keys were written down.
        Applied::Digest(digest) if digest == config.digest() && machine.keys.are_awaited() => {
            Some("it is not known by its own keys yet")
        }
        Applied::Digest(digest) if digest == config.digest() => None,
        Applied::Digest(_) => Some("its configuration changed"),
        Applied::Never => Some("it was never configured"),
        Applied::Unknown => Some("its current configuration is unknown"),
    }
}

/// What makes a node's configuration true, on a machine that is there or on the one that is made before.
fn configure(node: &Node, machine: Option<MachineRef>) -> Option<Action> {
    let config = node.config.clone()?;
    Some(Action::Configure { machine, mode: node.mode, config })
}

fn reference(machine: &Machine) -> Option<MachineRef> {
    let uuid = machine.marks.as_ref()?.uuid;
    Some(MachineRef { id: machine.id.clone(), name: machine.name.clone(), uuid })
}
