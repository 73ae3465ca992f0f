//! Nodes inside nodes: a node that runs Proxmox VE is a host of its own, whose API is spoken to through the SSH connection to
//! that node. However deep, it is the same: each level is a [`Nest`] inside of another.
//!
//! Nothing is left on the way: what opens the API inside a node is made when it is needed, ends by itself, stays in memory,
//! and is taken away at the end.

mod inner;
mod kin;
mod session;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{Identity, NodeKind, NodeName};
use orch_plan::{Action, HostView, Machine, MachineRef, MachineSpec, MachineState};
use orch_run::{
    Belonging, Done, Order, Owner, Permit, Progress, Provider, ProviderError, Scope, Target, TransportError,
};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::ground::Elsewhere;
use crate::preflight::{Obstacle, Preflight, Wanted};
use crate::proxmox::{Proxmox, ProxmoxSetup};
use crate::ssh::{Hop, Ssh, SshSettings, Way, Wayfinder};
use kin::Kin;
pub(crate) use kin::Kinship;
use session::Session;

/// How long it may take to look into all nodes that others live in: less than whoever looks is given.
const LOOK: Duration = Duration::from_secs(20);

/// A Proxmox VE with those inside of its nodes.
pub(crate) struct Nest {
    /// The one that is spoken to here.
    here: Arc<Proxmox>,
    setup: ProxmoxSetup,
    kin: Kin,
    /// The way to the nodes here, for what is inside of them.
    ssh: Arc<Ssh>,
    settings: SshSettings,
    /// The hops that lead to whoever runs this one; none where it is the host itself.
    before: Vec<Hop>,
    /// Those inside, by the mark of the node that they are in.
    inside: Arc<Mutex<BTreeMap<Uuid, Inside>>>,
}

/// A Proxmox VE inside of a node.
struct Inside {
    nest: Arc<Nest>,
    session: Session,
}

impl Nest {
    /// The host itself.
    pub(crate) fn new(setup: ProxmoxSetup, kinship: Kinship, settings: SshSettings) -> Arc<Self> {
        Self::at(setup, Kin::of_host(kinship), settings, Vec::new())
    }

    fn at(setup: ProxmoxSetup, kin: Kin, settings: SshSettings, before: Vec<Hop>) -> Arc<Self> {
        let here = Arc::new(Proxmox::new(setup.clone()));
        let finder = Arc::new(Beyond { here: Arc::clone(&here), before: before.clone() });
        let ssh = Arc::new(Ssh::new(finder, settings.clone()));
        Arc::new(Self { here, setup, kin, ssh, settings, before, inside: Arc::default() })
    }

    fn failed(&self, node: &NodeName, why: impl std::fmt::Display) -> ProviderError {
        let why = format!("node `{node}`, which others live inside of, cannot be asked: {why}");
        ProviderError::NoAnswer { host: self.setup.host.clone(), why }
    }

    /// The machine here that is a node of ours, where it runs and is known by its own keys: before that, nobody has made
    /// anything inside of it.
    async fn home(&self, identity: &Identity) -> Result<Option<Machine>, ProviderError> {
        let scope = Scope { host: self.setup.host.clone(), node: Some(identity.clone()) };
        let view = self.here.observe(&scope).await?;
        let is_it =
            |machine: &&Machine| machine.marks.as_ref().is_some_and(|marks| marks.identity() == *identity);
        Ok(view.machines().iter().find(is_it).filter(|machine| is_home(machine)).cloned())
    }

    /// The Proxmox VE inside of a machine here.
    async fn inside(&self, identity: &Identity, machine: &Machine) -> Result<Arc<Self>, ProviderError> {
        let marks = machine.marks.as_ref().ok_or_else(|| self.failed(&identity.node, "it has no mark"))?;
        let mut inside = Arc::clone(&self.inside).lock_owned().await;
        if let Some(known) = inside.get(&marks.uuid) {
            return Ok(Arc::clone(&known.nest));
        }
        let target = Target {
            identity: identity.clone(),
            uuid: marks.uuid,
            mode: orch_model::Mode::Push,
            progress: Progress::to_nobody(),
        };
        let failed = |why: String| self.failed(&identity.node, why);
        let way = self.way(&target).await.map_err(|error| failed(error.to_string()))?;
        let connection = self.ssh.reach(&target).await.map_err(|error| failed(error.to_string()))?;
        let (setup, kin) = (self.setup.clone(), self.kin.inside(&identity.node));
        let (settings, parent) = (self.settings.clone(), identity.node.clone());
        // To its end, also where nobody waits for it any more: a token that nobody knows of could not be taken away.
        let opening = tokio::spawn(async move {
            let (session, opened) = Session::open(connection, &setup.proxmox).await?;
            let setup = ProxmoxSetup {
                proxmox: opened.proxmox,
                client: opened.client,
                parent: Some(parent),
                // Nobody can knock at what only the node around it can reach; whoever connects waits for it.
                reach: None,
                snippets: None,
                neighbours: None,
                ..setup
            };
            let nest = Self::at(setup, kin, settings, way.hops);
            inside.insert(target.uuid, Inside { nest: Arc::clone(&nest), session });
            Ok(nest)
        });
        opening.await.map_err(|error| failed(error.to_string()))?.map_err(failed)
    }

    /// The nest that a node is in, where that is not this one; and the machine around it.
    async fn around(&self, node: &Identity) -> Result<Option<(Arc<Self>, Machine)>, ProviderError> {
        let Some(parent) = self.kin.towards(node) else { return Ok(None) };
        let parent = Identity { node: parent, ..node.clone() };
        let home = self.home(&parent).await?;
        let home = home.ok_or_else(|| self.failed(&parent.node, "it does not run, or is not configured"))?;
        Ok(Some((self.inside(&parent, &home).await?, home)))
    }

    /// Everything inside of the machines here that others live in. One that cannot be asked keeps nobody else from being seen:
    /// in it is shown what cannot be seen, so that nobody takes it for empty.
    async fn all_inside(&self, view: &HostView) -> Vec<Machine> {
        let deadline = Instant::now() + LOOK;
        let mut found = Vec::new();
        for machine in view.machines().iter().filter(|machine| is_home(machine)) {
            let Some(marks) = machine.marks.as_ref().filter(|marks| self.kin.hosts(marks)) else { continue };
            let look = async {
                let nest = self.inside(&marks.identity(), machine).await?;
                let scope = Scope { host: self.setup.host.clone(), node: None };
                Box::pin(nest.observe(&scope)).await
            };
            let late = |_| Err(self.failed(&marks.node, "it does not answer"));
            match timeout_at(deadline, look).await.unwrap_or_else(late) {
                Ok(inner) => {
                    found.extend(
                        inner.machines().iter().map(|inner| inner::seen_from_outside(inner, machine)),
                    );
                }
                Err(error) => found.push(inner::unseen(machine, &error.to_string())),
            }
        }
        found
    }

    /// Takes away what opens the APIs inside of nodes.
    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let inside = std::mem::take(&mut *self.inside.lock().await);
            let mut closing = JoinSet::new();
            for Inside { nest, session } in inside.into_values() {
                closing.spawn(async move {
                    nest.closed().await;
                    session.close().await;
                });
            }
            closing.join_all().await;
            self.ssh.close().await;
        })
    }
}

/// Whether others can live inside of a machine: it runs, and is known by its own keys.
fn is_home(machine: &Machine) -> bool {
    machine.state == MachineState::Running && machine.keys.known().is_some_and(|keys| keys.settled)
}

#[async_trait]
impl Provider for Nest {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        if let Some(node) = &scope.node {
            let Some(parent) = self.kin.towards(node) else { return self.here.observe(scope).await };
            let parent = Identity { node: parent, ..node.clone() };
            let Some(home) = self.home(&parent).await? else { return Ok(HostView::empty()) };
            let nest = self.inside(&parent, &home).await?;
            let view = nest.observe(scope).await?;
            return Ok(inner::view_from_outside(view, &home));
        }
        let mut view = self.here.observe(scope).await?;
        let inner = self.all_inside(&view).await;
        if let HostView::Seen { machines, .. } = &mut view {
            machines.extend(inner);
        }
        Ok(view)
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        let Some(id) = order.action.machine().map(|machine| machine.id.clone()) else {
            return match self.around(&order.identity).await? {
                Some((nest, _)) => nest.apply(&nest.numbered(order).await?, permit).await,
                None => self.here.apply(order, permit).await,
            };
        };
        let Some((outer, rest)) = inner::split(&id) else { return self.here.apply(order, permit).await };
        let scope = Scope { host: self.setup.host.clone(), node: None };
        let view = self.here.observe(&scope).await?;
        let home = view.machines().iter().find(|machine| machine.id == outer);
        let Some((home, marks)) = home.and_then(|home| Some((home, home.marks.as_ref()?))) else {
            // What it was in is gone, and so is what was inside of it.
            return match order.action {
                Action::Destroy { .. } => Ok(Done::Unchanged),
                _ => Err(self.failed(&order.identity.node, "what it lives inside of is gone")),
            };
        };
        let nest = self.inside(&marks.identity(), home).await?;
        let order = inner::with_id(order, rest);
        Box::pin(nest.apply(&order, permit)).await
    }

    fn is_told(&self) -> bool {
        true
    }

    async fn pin(&self, pin: &orch_run::Pin, permit: &Permit) -> Result<Done, ProviderError> {
        match self.around(&pin.identity).await? {
            Some((nest, _)) => Box::pin(nest.pin(pin, permit)).await,
            None => self.here.pin(pin, permit).await,
        }
    }

    async fn belongings(&self, of: &Owner) -> Result<Vec<Belonging>, ProviderError> {
        let mut found = self.here.belongings(of).await?;
        let scope = Scope { host: self.setup.host.clone(), node: None };
        let view = self.here.observe(&scope).await?;
        for machine in view.machines().iter().filter(|machine| is_home(machine)) {
            let Some(marks) = machine.marks.as_ref().filter(|marks| self.kin.hosts(marks)) else { continue };
            let nest = self.inside(&marks.identity(), machine).await?;
            let inner = Box::pin(nest.belongings(of)).await?;
            found.extend(
                inner.into_iter().map(|thing| Belonging { id: inner::id(&machine.id, &thing.id), ..thing }),
            );
        }
        Ok(found)
    }
}

impl Nest {
    /// An order with a VMID of this node's own: inside of a node, numbers are that node's, and no plan knows them.
    async fn numbered(&self, order: &Order) -> Result<Order, ProviderError> {
        let Action::Create { machine } = &order.action else { return Ok(order.clone()) };
        if machine.vmid.is_some() {
            return Ok(order.clone());
        }
        let view = self.here.observe(&Scope { host: self.setup.host.clone(), node: None }).await?;
        let own = view
            .machines()
            .iter()
            .find(|seen| seen.marks.as_ref().is_some_and(|marks| marks.uuid == order.uuid));
        let taken: Vec<u32> = view.machines().iter().filter_map(|machine| machine.vmid).collect();
        let range = self.setup.proxmox.vmid_range;
        let vmid =
            own.and_then(|own| own.vmid).or_else(|| inner::free_number(&order.identity, range, &taken));
        let full = || ProviderError::Refused {
            host: self.setup.host.clone(),
            why: format!(
                "every VMID from {} to {} is taken inside of its parent",
                range.first(),
                range.last()
            ),
        };
        let machine = MachineSpec { vmid: Some(vmid.ok_or_else(full)?), ..machine.clone() };
        Ok(Order { action: Action::Create { machine }, ..order.clone() })
    }
}

#[async_trait]
impl Wayfinder for Nest {
    async fn way(&self, target: &Target) -> Result<Way, TransportError> {
        let unseen = |error: ProviderError| TransportError::Unreachable {
            node: target.identity.clone(),
            why: error.to_string(),
            evidence: error.evidence().to_vec(),
        };
        match self.around(&target.identity).await.map_err(unseen)? {
            Some((nest, _)) => Box::pin(nest.way(target)).await,
            None => Beyond { here: Arc::clone(&self.here), before: self.before.clone() }.way(target).await,
        }
    }
}

#[async_trait]
impl Elsewhere for Nest {
    /// What is to be made inside of nodes is looked at when these are there.
    async fn preflight(&self, wanted: &[Wanted]) -> Preflight {
        let here = wanted.iter().filter(|wanted| wanted.machine.parent.is_none());
        let here: Vec<MachineSpec> = here.map(|wanted| wanted.machine.clone()).collect();
        let mut said = self.here.preflight(&here).await;
        // Nobody but the host can say what the key of a container is.
        let is_out_of_reach = |wanted: &&Wanted| {
            let knows = self.setup.neighbours.is_some() && wanted.machine.parent.is_none();
            wanted.machine.kind == NodeKind::Ct && wanted.becomes.is_some() && !knows
        };
        said.obstacles.extend(wanted.iter().filter(is_out_of_reach).map(|wanted| Obstacle {
            what: format!("node `{}` is a container, and its SSH host key cannot be known", wanted.node),
            hint:
                "say by `ssh` with `host_keys` how the host itself is reached, or make the node a vm".into(),
        }));
        said
    }

    async fn close(&self) {
        self.closed().await;
    }
}

/// The way to a machine here, behind the hops that lead here.
struct Beyond {
    here: Arc<Proxmox>,
    before: Vec<Hop>,
}

#[async_trait]
impl Wayfinder for Beyond {
    async fn way(&self, target: &Target) -> Result<Way, TransportError> {
        let way = self.here.way(target).await?;
        Ok(Way { hops: self.before.iter().cloned().chain(way.hops).collect(), ..way })
    }
}

/// The reference to a machine, as the nest that it is in knows it.
fn inner_reference(machine: &MachineRef, id: &str) -> MachineRef {
    MachineRef { id: id.to_owned(), ..machine.clone() }
}
