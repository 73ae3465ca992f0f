//! The machines of a host, and what providers and transports do to them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{Config, HostName, NodeKeys, NodeName};
use orch_plan::{Abilities, Action, Applied, HostView, Keys, Machine, MachineRef, MachineSpec, MachineState};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::systems::Systems;
use crate::permit::Permit;
use crate::provider::{Done, Order, Pin, Provider, ProviderError, Scope};
use crate::transport::{Configured, Target, Transport, TransportError};

/// What is in the file of a world.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorldFile {
    /// Every machine of the host.
    pub machines: Vec<Machine>,
    /// How many machines were ever made.
    pub made: u64,
    /// The machines that have put away the key that they were made with.
    #[serde(default)]
    pub settled: BTreeSet<Uuid>,
}

/// A host in memory.
pub struct MemoryProvider {
    host: HostName,
    file: Option<PathBuf>,
    world: Mutex<WorldFile>,
    /// Whether nothing can be told of the keys of machines.
    is_keyless: bool,
    /// What machines run that are NixOS.
    pub(super) systems: Systems,
    /// How long a lease lasts, whatever is asked for.
    pub(super) lease_lasts: Option<Duration>,
    /// Called when a machine exists and does not run yet: a test ends the process here.
    half_way: Box<dyn Fn() + Send + Sync>,
}

impl MemoryProvider {
    /// A host that ends with the process.
    pub fn new(host: HostName) -> Self {
        Self {
            host,
            file: None,
            world: Mutex::default(),
            is_keyless: false,
            systems: Systems::default(),
            lease_lasts: None,
            half_way: Box::new(|| {}),
        }
    }

    /// A host that is kept in a file, as it is after each move; an absent file is an empty host.
    pub fn in_file(host: HostName, file: &Path) -> io::Result<Self> {
        let world = match fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => WorldFile::default(),
            Err(error) => return Err(error),
        };
        Ok(Self { file: Some(file.to_owned()), world: Mutex::new(world), ..Self::new(host) })
    }

    /// The same, where nothing can be told of the keys of machines: then nothing is done about them.
    pub fn keyless(mut self) -> Self {
        self.is_keyless = true;
        self
    }

    /// The same, with leases that last so long, whatever is asked for: nodes count in whole seconds, tests do not.
    pub fn leasing_for(mut self, lasts: Duration) -> Self {
        self.lease_lasts = Some(lasts);
        self
    }

    /// Has `half_way` called whenever a machine is half made.
    pub fn when_half_way(mut self, half_way: impl Fn() + Send + Sync + 'static) -> Self {
        self.half_way = Box::new(half_way);
        self
    }

    /// What is there.
    pub fn world(&self) -> WorldFile {
        self.world.lock().expect("nobody panics while holding this").clone()
    }

    /// Puts a machine there by hand: a stranger's, or one of ours that somebody changed.
    pub fn put(&self, machine: Machine) {
        self.change(|world| world.machines.push(machine)).expect("a test's world can be written");
    }

    /// Changes a machine by hand.
    pub fn tamper(&self, name: &str, change: impl FnOnce(&mut Machine)) {
        let tampered = self.change(|world| {
            if let Some(machine) = world.machines.iter_mut().find(|machine| machine.name == name) {
                change(machine);
            }
        });
        tampered.expect("a test's world can be written");
    }

    /// One move: the world changes and is written, or does not.
    fn change<T>(&self, change: impl FnOnce(&mut WorldFile) -> T) -> io::Result<T> {
        let mut world = self.world.lock().expect("nobody panics while holding this");
        let mut next = world.clone();
        let result = change(&mut next);
        if let Some(file) = &self.file {
            let draft = file.with_extension("new");
            fs::write(&draft, serde_json::to_vec_pretty(&next)?)?;
            fs::rename(&draft, file)?;
        }
        *world = next;
        Ok(result)
    }

    /// Says of a machine which configuration it has.
    pub(super) fn applied_by_hand(&self, uuid: Uuid, applied: Applied) -> io::Result<()> {
        self.change(|world| {
            let found = world.machines.iter_mut().filter(|machine| bears(machine, uuid));
            found.for_each(|machine| machine.applied = applied);
        })
    }

    fn refused(&self, why: impl Into<String>) -> ProviderError {
        ProviderError::Refused { host: self.host.clone(), why: why.into() }
    }

    fn moved<T>(&self, change: impl FnOnce(&mut WorldFile) -> T) -> Result<T, ProviderError> {
        self.change(change).map_err(|error| self.refused(error.to_string()))
    }

    /// Makes a machine in two moves, as hypervisors do: it exists with its mark, then it runs.
    fn make(&self, order: &Order, spec: &MachineSpec) -> Result<Done, ProviderError> {
        let inside = spec.parent.as_ref().map(|parent| self.find_parent(order, parent)).transpose()?;
        let world = self.world();
        if let Some(machine) = world.machines.iter().find(|machine| bears(machine, order.uuid)) {
            return if machine.state == MachineState::Partial {
                self.finish(order, spec)
            } else {
                Ok(Done::Unchanged)
            };
        }
        let is_taken = |machine: &Machine| {
            let is_beside = machine.inside == inside;
            is_beside && (machine.name == spec.name || (spec.vmid.is_some() && machine.vmid == spec.vmid))
        };
        if let Some(machine) = world.machines.iter().find(|machine| is_taken(machine)) {
            return Err(ProviderError::NotOurs { machine: machine.id.clone(), expected: order.uuid });
        }
        self.moved(|world| {
            world.made += 1;
            let keys = if self.is_keyless { Keys::Unknown } else { Keys::Awaited };
            let machine = half_made(order, spec, format!("m{}", world.made), inside);
            world.machines.push(Machine { keys, ..machine });
        })?;
        (self.half_way)();
        self.finish(order, spec)
    }

    fn finish(&self, order: &Order, spec: &MachineSpec) -> Result<Done, ProviderError> {
        self.moved(|world| {
            for machine in world.machines.iter_mut().filter(|machine| bears(machine, order.uuid)) {
                machine.state = MachineState::Running;
                machine.size = spec.size;
            }
        })?;
        Ok(Done::Changed)
    }

    /// The id of the machine of an order's parent, which must run.
    fn find_parent(&self, order: &Order, parent: &NodeName) -> Result<String, ProviderError> {
        let is_parent = |machine: &Machine| {
            let marks = machine.marks.as_ref();
            marks.is_some_and(|marks| marks.node == *parent && marks.manifest == order.identity.manifest)
        };
        let world = self.world();
        let running = |machine: &&Machine| machine.state == MachineState::Running;
        match world.machines.iter().filter(|machine| is_parent(machine)).find(running) {
            Some(machine) => Ok(machine.id.clone()),
            None => Err(self.refused(format!("node `{parent}` does not run, so nothing can be made on it"))),
        }
    }

    /// Changes a machine that is there and bears the mark.
    fn on_marked(
        &self,
        machine: &MachineRef,
        change: impl FnOnce(&mut Machine),
    ) -> Result<Done, ProviderError> {
        self.verify(machine)?;
        self.moved(|world| world.machines.iter_mut().find(|found| found.id == machine.id).map(change))?;
        Ok(Done::Changed)
    }

    fn verify(&self, machine: &MachineRef) -> Result<(), ProviderError> {
        let world = self.world();
        let found = world.machines.iter().find(|found| found.id == machine.id);
        match found {
            Some(found) if bears(found, machine.uuid) => Ok(()),
            Some(_) => Err(ProviderError::NotOurs { machine: machine.id.clone(), expected: machine.uuid }),
            None => Err(self.refused(format!("machine `{}` does not exist", machine.id))),
        }
    }

    fn destroy(&self, machine: &MachineRef) -> Result<Done, ProviderError> {
        let world = self.world();
        if !world.machines.iter().any(|found| found.id == machine.id) {
            return Ok(Done::Unchanged);
        }
        self.verify(machine)?;
        let lives_on_it = |other: &&Machine| other.inside.as_ref() == Some(&machine.id);
        if let Some(inhabitant) = world.machines.iter().find(lives_on_it) {
            return Err(self.refused(format!("machine `{}` lives on it", inhabitant.id)));
        }
        self.moved(|world| world.machines.retain(|found| found.id != machine.id))?;
        Ok(Done::Changed)
    }
}

fn bears(machine: &Machine, uuid: Uuid) -> bool {
    machine.marks.as_ref().is_some_and(|marks| marks.uuid == uuid)
}

fn half_made(order: &Order, spec: &MachineSpec, id: String, inside: Option<String>) -> Machine {
    Machine {
        id,
        name: spec.name.clone(),
        marks: Some(order.marks()),
        inside,
        state: MachineState::Partial,
        size: spec.size,
        kind: Some(spec.kind),
        image: Some(spec.image.clone()),
        vmid: spec.vmid,
        applied: Applied::Never,
        keys: Keys::Awaited,
    }
}

/// The keys of a machine here: another one has others.
fn keys_of(uuid: Uuid, settled: bool) -> NodeKeys {
    let data: String = uuid.simple().to_string().replace('b', "g").replace('1', "z");
    let age = format!("age1{data}{}", "q".repeat(26)).parse().expect("these are characters of recipients");
    NodeKeys { age, host_key: None, settled }
}

#[async_trait]
impl Provider for MemoryProvider {
    async fn observe(&self, _scope: &Scope) -> Result<HostView, ProviderError> {
        Ok(HostView::Seen { machines: self.world().machines, abilities: Abilities::COMMON })
    }

    async fn apply(&self, order: &Order, _permit: &Permit) -> Result<Done, ProviderError> {
        match &order.action {
            Action::Create { machine } => self.make(order, machine),
            Action::Adopt { found, machine } => {
                self.verify(found)?;
                self.finish(order, machine)
            }
            Action::Resize { machine, to, .. } => self.on_marked(machine, |found| found.size = *to),
            Action::Start { machine } => self.on_marked(machine, |found| found.state = MachineState::Running),
            Action::Destroy { machine } => self.destroy(machine),
            Action::Configure { .. } => Err(self.refused("configurations are the transport's")),
        }
    }

    async fn pin(&self, pin: &Pin, _permit: &Permit) -> Result<Done, ProviderError> {
        let world = self.world();
        let found = world.machines.iter().find(|machine| bears(machine, pin.uuid));
        let found = found.ok_or_else(|| self.refused("no machine bears that mark"))?;
        let machine = MachineRef { id: found.id.clone(), name: found.name.clone(), uuid: pin.uuid };
        let Some(keys) = pin.keys.clone() else { return Ok(Done::Unchanged) };
        self.on_marked(&machine, |found| found.keys = Keys::Known(keys))
    }
}

#[async_trait]
impl Transport for MemoryProvider {
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        let wanted = Applied::Digest(config.digest());
        let failed = |why: &str| TransportError::Failed {
            node: target.identity.clone(),
            why: why.into(),
            evidence: Vec::new(),
        };
        let world = self.world();
        let keys = Some(keys_of(target.uuid, world.settled.contains(&target.uuid)));
        let machine = world.machines.iter().find(|machine| bears(machine, target.uuid));
        let machine = machine.ok_or_else(|| failed("it does not exist"))?;
        if machine.state != MachineState::Running {
            return Err(failed("it does not run"));
        }
        if machine.applied == wanted && self.systems.runs(target.uuid, config) {
            return Ok(Configured { changed: false, notes: Vec::new(), keys });
        }
        self.systems.move_to(target, config, machine.applied, permit).map_err(|why| failed(&why))?;
        let applied = self.applied_by_hand(target.uuid, wanted);
        applied.map_err(|error| failed(&error.to_string()))?;
        Ok(Configured { changed: true, notes: Vec::new(), keys })
    }

    async fn settle(&self, target: &Target, _permit: &Permit) -> Result<NodeKeys, TransportError> {
        let settled = self.change(|world| world.settled.insert(target.uuid));
        let failed = |error: io::Error| TransportError::Failed {
            node: target.identity.clone(),
            why: error.to_string(),
            evidence: Vec::new(),
        };
        settled.map_err(failed)?;
        Ok(keys_of(target.uuid, true))
    }
}
