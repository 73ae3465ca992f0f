//! A reference executor of a few lines: it does what a plan says to a world in memory, in any order that the plan
//! allows, and checks at every action that the world is fit for it and that the read-back confirms it.

use orch_model::{Fleet, Identity, Node, NodeName};
use orch_plan::{
    Action, Applied, HostView, Machine, MachineRef, MachineSpec, MachineState, Marks, NodePlan, Observed,
    Plan, confirm,
};
use uuid::Uuid;

/// Which of the steps that may come next comes next: given how many there are, the place of one.
pub(crate) type Choose<'c> = &'c mut dyn FnMut(usize) -> usize;

/// The two ways of an executor that works on one node at a time.
pub(crate) const FIRST: fn(usize) -> usize = |_| 0;
pub(crate) const LAST: fn(usize) -> usize = |count| count - 1;

/// One half of what happens to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Down(usize),
    Up(usize),
}

/// All steps of a plan, in an order that [`NodePlan`] allows: down after everything that needs the node is down, up
/// after its own down and when everything that it needs is up.
pub(crate) fn steps(plan: &Plan, choose: Choose<'_>) -> Vec<Step> {
    let count = plan.nodes.len();
    let (mut down, mut up) = (vec![false; count], vec![false; count]);
    let mut done = Vec::new();
    while done.len() < 2 * count {
        let may_go_down = |place: usize| {
            let mut others = plan.nodes.iter().zip(&down);
            !down[place] && others.all(|(other, down)| *down || !other.needs.contains(&place))
        };
        let may_come_up = |place: usize| {
            let mut needs = plan.nodes[place].needs.iter();
            !up[place] && down[place] && needs.all(|need| up[*need])
        };
        let downs = (0..count).filter(|place| may_go_down(*place)).map(Step::Down);
        let ready: Vec<Step> =
            downs.chain((0..count).filter(|place| may_come_up(*place)).map(Step::Up)).collect();
        assert!(!ready.is_empty(), "the plan waits for itself");
        let step = ready[choose(ready.len())];
        match step {
            Step::Down(place) => down[place] = true,
            Step::Up(place) => up[place] = true,
        }
        done.push(step);
    }
    done
}

/// The steps in which something is done, in words.
pub(crate) fn order(plan: &Plan, choose: Choose<'_>) -> String {
    let words = steps(plan, choose).into_iter().filter_map(|step| {
        let (word, place, actions) = match step {
            Step::Down(place) => ("down", place, &plan.nodes[place].down),
            Step::Up(place) => ("up", place, &plan.nodes[place].up),
        };
        (!actions.is_empty()).then(|| format!("{word} {}", plan.nodes[place].name()))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A world that a plan is carried out on.
pub(crate) struct World<'f> {
    fleet: &'f Fleet,
    pub(crate) observed: Observed,
    made: u32,
}

impl<'f> World<'f> {
    pub(crate) fn new(fleet: &'f Fleet, observed: Observed) -> Self {
        Self { fleet, observed, made: 0 }
    }

    /// Does everything that the plan says.
    pub(crate) fn run(&mut self, plan: &Plan, choose: Choose<'_>) {
        self.run_until(plan, choose, usize::MAX);
    }

    /// Does the first `actions` actions and is killed in the middle of the next one.
    pub(crate) fn run_until(&mut self, plan: &Plan, choose: Choose<'_>, mut actions: usize) {
        for step in steps(plan, choose) {
            let (place, is_down) = match step {
                Step::Down(place) => (place, true),
                Step::Up(place) => (place, false),
            };
            let node = &plan.nodes[place];
            for action in if is_down { &node.down } else { &node.up } {
                if actions == 0 {
                    return self.begin(node, action);
                }
                actions -= 1;
                self.apply(node, action);
            }
        }
    }

    /// What is left of an action that was cut off: a machine that was begun, or nothing at all.
    fn begin(&mut self, node: &NodePlan, action: &Action) {
        if let Action::Create { machine } = action {
            self.create(node, machine);
            let made = self.machine_of(&node.identity);
            made.state = MachineState::Partial;
        }
    }

    fn apply(&mut self, node: &NodePlan, action: &Action) {
        let identity = &node.identity;
        let mut uuid = action.machine().map(|machine| machine.uuid);
        match action {
            Action::Create { machine } => self.create(node, machine),
            Action::Adopt { found, machine } => {
                let adopted = self.find(identity, found);
                assert_eq!(adopted.state, MachineState::Partial);
                assert!(adopted.image.as_ref().is_none_or(|image| *image == machine.image));
                assert!(adopted.vmid == machine.vmid && adopted.name == machine.name);
                adopted.state = MachineState::Running;
                adopted.size = machine.size;
                adopted.applied = Applied::Never;
            }
            Action::Resize { machine, from, to } => {
                let resized = self.find(identity, machine);
                assert_eq!(resized.size, *from);
                resized.size = *to;
            }
            Action::Start { machine } => {
                let started = self.find(identity, machine);
                assert_eq!(started.state, MachineState::Stopped);
                started.state = MachineState::Running;
            }
            Action::Configure { machine, config, .. } => {
                assert_eq!(&config.node, identity);
                if let Some(machine) = machine {
                    self.find(identity, machine);
                }
                let configured = self.machine_of(identity);
                assert_eq!(configured.state, MachineState::Running, "{identity}");
                configured.applied = Applied::Digest(config.digest());
            }
            Action::Destroy { machine } => self.destroy(identity, machine),
        }
        uuid = uuid.or_else(|| self.machine_of(identity).marks.as_ref().map(|marks| marks.uuid));
        let uuid = uuid.expect("what is not destroyed bears a mark");
        let view = &self.observed.hosts[&identity.host];
        assert_eq!(confirm(action, &self.fleet.site, identity, uuid, view), Ok(()), "{}", action.verb());
    }

    fn create(&mut self, node: &NodePlan, spec: &MachineSpec) {
        let identity = &node.identity;
        assert_eq!(self.bearing(identity).count(), 0, "`{identity}` is there already");
        if let Some(parent) = &spec.parent {
            let parent = Identity { node: parent.clone(), ..identity.clone() };
            let states: Vec<MachineState> = self.bearing(&parent).map(|machine| machine.state).collect();
            assert_eq!(states, [MachineState::Running], "`{identity}` needs its parent");
        }
        self.made += 1;
        let machine = Machine {
            id: format!("made-{}", self.made),
            name: spec.name.clone(),
            marks: Some(Marks {
                site: self.fleet.site.clone(),
                manifest: identity.manifest.clone(),
                node: identity.node.clone(),
                host: identity.host.clone(),
                uuid: Uuid::from_u128(u128::from(self.made) << 64),
            }),
            inside: None,
            state: MachineState::Running,
            size: spec.size,
            kind: Some(spec.kind),
            image: Some(spec.image.clone()),
            vmid: spec.vmid,
            applied: Applied::Never,
            keys: orch_plan::Keys::Unknown,
        };
        let on_host = self.observed.hosts[&identity.host].machines();
        assert!(on_host.iter().all(|other| other.name != machine.name), "`{}` is taken", machine.name);
        if spec.parent.is_none() {
            let mut outer = on_host.iter().filter(|other| !self.is_nested(other));
            assert!(outer.all(|other| other.vmid.is_none() || other.vmid != machine.vmid), "VMID is taken");
        }
        self.machines(identity).push(machine);
    }

    fn destroy(&mut self, identity: &Identity, machine: &MachineRef) {
        let doomed = self.find(identity, machine).id.clone();
        let children = self.fleet.nodes.iter().filter(|node| node.parent.as_ref() == Some(&identity.node));
        for child in children {
            assert_eq!(self.bearing(&child.identity).count(), 0, "`{}` lives on it", child.name());
        }
        self.machines(identity).retain(|machine| machine.id != doomed);
    }

    fn is_nested(&self, machine: &Machine) -> bool {
        let node = machine.marks.as_ref().and_then(|marks| self.node(&marks.node));
        node.is_some_and(|node| node.parent.is_some())
    }

    fn node(&self, name: &NodeName) -> Option<&'f Node> {
        self.fleet.nodes.iter().find(|node| node.name() == name)
    }

    fn bearing(&self, identity: &Identity) -> impl Iterator<Item = &Machine> {
        let machines = self.observed.hosts[&identity.host].machines().iter();
        machines.filter(|machine| is_of(machine, self.fleet, identity))
    }

    /// The machine that an action names: with its id, with its mark, and ours.
    fn find(&mut self, identity: &Identity, wanted: &MachineRef) -> &mut Machine {
        let fleet = self.fleet;
        let mut machines = self.machines(identity).iter_mut();
        let found = machines.find(|machine| machine.id == wanted.id).expect("the machine is there");
        assert!(is_of(found, fleet, identity), "`{}` is a stranger's", found.name);
        assert!(
            found.marks.as_ref().is_some_and(|marks| marks.uuid == wanted.uuid) && found.name == wanted.name
        );
        found
    }

    /// The only machine of a node, if it was not just destroyed.
    fn machine_of(&mut self, identity: &Identity) -> &mut Machine {
        let fleet = self.fleet;
        let mut machines =
            self.machines(identity).iter_mut().filter(|machine| is_of(machine, fleet, identity));
        let machine = machines.next().expect("the node has a machine");
        assert!(machines.next().is_none(), "`{identity}` has one machine");
        machine
    }

    fn machines(&mut self, identity: &Identity) -> &mut Vec<Machine> {
        match self.observed.hosts.get_mut(&identity.host) {
            Some(HostView::Seen { machines, .. }) => machines,
            _ => unreachable!("nothing is done on a host that did not answer"),
        }
    }
}

/// Whether a machine is that node of that fleet's site.
pub(crate) fn is_of(machine: &Machine, fleet: &Fleet, identity: &Identity) -> bool {
    machine.marks.as_ref().is_some_and(|marks| marks.is_of(&fleet.site, identity))
}
