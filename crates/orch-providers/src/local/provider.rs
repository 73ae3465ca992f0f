//! The provider: what the plan orders, done on this computer.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{ApplyReport, ApplyStatus, HostName, Identity, Size, UserName};
use orch_plan::{
    Abilities, Action, Applied, DiskAbility, HostView, Keys, Machine, MachineRef, MachineSpec, MachineState,
};
use orch_run::{Done, Order, Permit, Pin, Provider, ProviderError, Scope, StateDir};

use super::inside;
use super::machine::Means;
use super::make::{MakeError, Maker};
use super::record::{Folder, Record};
use super::store::{Found, Store};
use crate::preflight::{Obstacle, Preflight};
use crate::ssh::chain;

/// Where a node keeps what became of its configuration.
const COMPLETE: &str = "/var/lib/orch/complete.json";
/// What is not known of a stranger's machine.
const UNKNOWN_SIZE: Size = Size { cores: 1, memory: 512, disk: 1 };

/// What a host on this computer is made with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The host.
    pub host: HostName,
    /// The driver's own folder, where machines are kept.
    pub state: StateDir,
    /// The site's folder; images are relative to it.
    pub site: PathBuf,
    /// The account that orch comes in with.
    pub user: UserName,
    /// This program, which starts itself for what needs a process of its own.
    pub program: PathBuf,
    /// How long a machine may take until its SSH server answers; nothing where a machine counts as made without that.
    pub reach: Option<Duration>,
}

/// This computer as a host.
#[derive(Debug, Clone)]
pub struct Local {
    pub(super) maker: Arc<Maker>,
}

impl Local {
    /// A host on this computer. Touches nothing.
    pub fn new(setup: Setup) -> Self {
        // Other processes work in other folders: they are given paths that mean the same everywhere.
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let store = Store::at(absolute(setup.state.local().join(setup.host.as_str())));
        let maker = Maker {
            host: setup.host,
            store,
            site: absolute(setup.site),
            user: setup.user,
            identity: absolute(setup.state.keys().join("driver_ed25519")),
            program: absolute(setup.program),
            means: Means::look(),
            reach: setup.reach,
            looked_into: Arc::default(),
        };
        Self { maker: Arc::new(maker) }
    }

    /// Says what would stand in the way of making these machines, and what would be less than they ask for.
    pub async fn preflight(&self, wanted: Vec<MachineSpec>) -> Preflight {
        let maker = Arc::clone(&self.maker);
        let said = tokio::task::spawn_blocking(move || maker.preflight(&wanted));
        said.await.unwrap_or_else(|error| {
            let what = format!("what stands in the way on this computer cannot be found out: {error}");
            let hint = "run again, and tell the makers of orch".into();
            Preflight { obstacles: vec![Obstacle { what, hint }], caveats: Vec::new(), costs: Vec::new() }
        })
    }

    /// Removes what interrupted runs left of machines that are gone.
    pub async fn tidy(&self, permit: &Permit) -> io::Result<()> {
        if !permit.covers(&self.maker.host) {
            return Ok(());
        }
        let (maker, permit) = (Arc::clone(&self.maker), permit.clone());
        let tidied = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            maker.tidy()
        });
        tidied.await.map_err(io::Error::other)?
    }

    /// Switches a machine off at once, and before it those that live inside of it. One that is off stays so.
    pub async fn switch_off(&self, machine: &MachineRef, permit: &Permit) -> Result<Done, ProviderError> {
        let machine = machine.clone();
        self.under(permit, move |local| local.maker.switch_off(&machine)).await
    }

    /// Leaves behind what a driver leaves that was killed just after it began to make a machine.
    pub fn leave_half_made(&self, order: &Order) -> Result<(), ProviderError> {
        let Action::Create { machine } = &order.action else { return Ok(()) };
        self.maker.begin(order, machine).map(|_| ()).map_err(|error| self.told(error))
    }

    /// What is there. Where one node is of interest, the others are known by their records and looked at no further: each
    /// step of a run ends with such a look, and there are as many steps as machines.
    fn view(&self, node: Option<&Identity>) -> io::Result<HostView> {
        let is_of_interest = |found: &Found| match (&found.record, node) {
            (Some(record), Some(node)) => record.marks.identity() == *node,
            _ => true,
        };
        let machines = self.maker.store.list()?.into_iter().filter(is_of_interest).map(machine).collect();
        let disk = if self.maker.means.disk.is_some() { DiskAbility::Grow } else { DiskAbility::Any };
        Ok(HostView::Seen { machines, abilities: Abilities { cores: true, memory: true, disk } })
    }

    fn carry_out(&self, order: &Order) -> Result<Done, MakeError> {
        let progress = &order.progress;
        match &order.action {
            Action::Create { machine } => self.maker.create(order, machine),
            Action::Adopt { found, machine } => self.maker.adopt(order, found, machine.size),
            Action::Resize { machine, to, .. } => self.maker.resize(machine, *to, progress),
            Action::Start { machine } => self.maker.start(machine, progress),
            Action::Destroy { machine } => self.maker.destroy(machine, progress),
            Action::Configure { .. } => Err(MakeError::Refused("configurations are the transport's".into())),
        }
    }

    fn told(&self, error: MakeError) -> ProviderError {
        let host = self.maker.host.clone();
        let why = chain(&error);
        match error {
            MakeError::NotOurs { machine, expected } => ProviderError::NotOurs { machine, expected },
            MakeError::Refused(why) => ProviderError::Refused { host, why },
            MakeError::Step { .. } => {
                let hint = "mend what stands in the way on this computer, and run again".into();
                ProviderError::Failed { host, why, evidence: Vec::new(), hint }
            }
            MakeError::Key(error) => {
                ProviderError::Failed { host, why, evidence: Vec::new(), hint: error.hint() }
            }
            MakeError::NotReached { evidence, .. } => ProviderError::Late { host, why, evidence },
            MakeError::NotStarted { evidence, why: trouble, .. } => {
                let hint = super::advice::advice(&trouble);
                ProviderError::Failed { host, why, evidence, hint }
            }
        }
    }
}

#[async_trait]
impl Provider for Local {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        let this = self.clone();
        let unseen = |why: String| ProviderError::NoAnswer { host: scope.host.clone(), why };
        let node = scope.node.clone();
        let view = tokio::task::spawn_blocking(move || this.view(node.as_ref())).await;
        view.map_err(|error| unseen(error.to_string()))?.map_err(|error| unseen(error.to_string()))
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        let order = order.clone();
        self.under(permit, move |local| local.carry_out(&order)).await
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        let pin = pin.clone();
        self.under(permit, move |local| local.maker.pin(&pin)).await
    }
}

impl Local {
    /// Changes something with leave to do so. The locks are held for as long as the work goes on, also where nobody waits for it
    /// any more.
    async fn under(
        &self,
        permit: &Permit,
        work: impl FnOnce(&Self) -> Result<Done, MakeError> + Send + 'static,
    ) -> Result<Done, ProviderError> {
        let host = &self.maker.host;
        if !permit.covers(host) {
            return Err(ProviderError::Refused { host: host.clone(), why: "its lock is not held".into() });
        }
        let (this, permit) = (self.clone(), permit.clone());
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&this)
        });
        let ended = |error: tokio::task::JoinError| ProviderError::NoAnswer {
            host: host.clone(),
            why: error.to_string(),
        };
        done.await.map_err(ended)?.map_err(|error| self.told(error))
    }
}

/// A machine as it is seen, or a stranger's.
fn machine(found: Found) -> Machine {
    let name = found.folder.name();
    let Some(record) = found.record else {
        return Machine {
            id: name.clone(),
            name,
            marks: None,
            inside: None,
            state: MachineState::Stopped,
            size: UNKNOWN_SIZE,
            kind: None,
            image: None,
            vmid: None,
            applied: Applied::Unknown,
            keys: Keys::Unknown,
        };
    };
    let state = match (record.made, found.folder.in_place()) {
        (false, _) => MachineState::Partial,
        (true, Some(_)) => MachineState::Running,
        (true, None) => MachineState::Stopped,
    };
    let applied = applied(&found.folder, &record);
    Machine {
        id: name.clone(),
        name,
        inside: record.inside,
        state,
        size: record.size,
        kind: Some(record.kind),
        image: Some(record.image),
        vmid: None,
        applied,
        keys: record.keys.map_or(Keys::Awaited, Keys::Known),
        marks: Some(record.marks),
    }
}

/// Which configuration a machine has, by its own word. That of one with a disk cannot be read while it is off.
fn applied(folder: &Folder, record: &Record) -> Applied {
    if !record.made {
        return Applied::Never;
    }
    let text = match folder.running() {
        Some(init) => inside::read(&init, COMPLETE),
        None if folder.disk().exists() => return Applied::Unknown,
        None => inside::read_below(&folder.root(), COMPLETE),
    };
    match text.as_deref().map(serde_json::from_str::<ApplyReport>) {
        Ok(Ok(report)) if report.status == ApplyStatus::Complete => Applied::Digest(report.spec_digest),
        Ok(_) => Applied::Never,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Applied::Never,
        Err(_) => Applied::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use orch_model::{NodeKind, NodeName};
    use orch_plan::Marks;
    use uuid::Uuid;

    use super::super::net::{Bridge, Place};
    use super::*;

    fn identity(node: &str) -> Identity {
        Identity {
            manifest: "lab".parse().expect("a name"),
            node: node.parse().expect("a name"),
            host: "father".parse().expect("a name"),
        }
    }

    /// Puts a machine of a node there, under a name of its own.
    fn put(local: &Local, folder: &str, node: &NodeName) {
        let Identity { manifest, host, .. } = identity("any");
        let marks = Marks {
            site: "site".parse().expect("a name"),
            manifest,
            node: node.clone(),
            host,
            uuid: Uuid::nil(),
        };
        let record = Record {
            marks,
            inside: None,
            kind: NodeKind::Vm,
            image: "this-machine".into(),
            size: UNKNOWN_SIZE,
            made: true,
            place: Place::first_free(Bridge::HOST, |_| false).expect("there is room"),
            children: Bridge::HOST,
            host_key: None,
            keys: None,
            user: UserName::root(),
            access: None,
            shares_programs: true,
        };
        let folder = local.maker.store.folder(folder);
        fs::create_dir_all(folder.path()).expect("a folder can be made");
        folder.write_record(&record).expect("a file can be written");
    }

    fn local(state: &Path) -> Local {
        Local::new(Setup {
            host: identity("any").host,
            state: StateDir::locate(Some(state)).expect("it is named"),
            site: state.into(),
            user: UserName::root(),
            program: "orch".into(),
            reach: None,
        })
    }

    #[test]
    fn a_look_at_one_node_shows_all_that_bear_its_marks_and_strangers_and_nothing_else() {
        let state = tempfile::tempdir().expect("a folder can be made");
        let local = local(state.path());
        put(&local, "lab-a", &identity("a").node);
        put(&local, "copied-by-hand", &identity("a").node);
        put(&local, "lab-b", &identity("b").node);
        fs::create_dir(local.maker.store.folder("stranger").path()).expect("a folder can be made");
        let shown = |node: Option<&Identity>| {
            let view = local.view(node).expect("it can be looked at");
            view.machines().iter().map(|machine| machine.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown(Some(&identity("a"))), ["copied-by-hand", "lab-a", "stranger"]);
        assert_eq!(shown(None), ["copied-by-hand", "lab-a", "lab-b", "stranger"]);
    }
}
