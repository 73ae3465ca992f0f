//! The provider: what the plan orders, done on a Proxmox VE.

use std::sync::Arc;

use async_trait::async_trait;
use orch_plan::{Abilities, Action, HostView, MachineSpec};
use orch_run::{Belonging, Done, Order, Owner, Permit, Pin, Provider, ProviderError, Scope};

use super::look::{Interest, Seen};
use super::maker::Maker;
use super::mark::{self, Bears};
use super::remove::disc_of;
use super::setup::ProxmoxSetup;
use super::trouble::Trouble;
use crate::preflight::Preflight;

/// A Proxmox VE as a host.
#[derive(Clone)]
pub struct Proxmox {
    pub(super) maker: Arc<Maker>,
}

impl Proxmox {
    /// A Proxmox VE as a host. Touches nothing.
    pub fn new(setup: ProxmoxSetup) -> Self {
        Self { maker: Arc::new(Maker::new(setup)) }
    }

    /// Says what would stand in the way of making these machines. Asks nothing where there are none.
    pub async fn preflight(&self, wanted: &[MachineSpec]) -> Preflight {
        Box::pin(self.maker.preflight(wanted)).await
    }

    async fn carry_out(&self, order: &Order) -> Result<Done, Trouble> {
        let maker = &self.maker;
        match &order.action {
            Action::Create { machine } => maker.create(order, machine).await,
            Action::Adopt { found, machine } => maker.adopt(order, found, machine).await,
            Action::Resize { machine, to, .. } => maker.resize(order, machine, *to).await,
            Action::Start { machine } => {
                let (spot, _) = maker.verified(&machine.id, order.uuid).await?;
                let done = maker.ensure_running(&spot, &order.progress).await?;
                if done == Done::Changed {
                    // It may have another address than before.
                    maker.remember_address(order.uuid, None);
                    maker.reach(order, &spot).await?;
                }
                Ok(done)
            }
            Action::Destroy { machine } => maker.destroy(&machine.id, order.uuid, &order.progress).await,
            Action::Configure { .. } => Err(Trouble::Refused("configurations are the transport's".into())),
        }
    }

    fn told(&self, trouble: Trouble) -> ProviderError {
        trouble.told(&self.maker.setup.host)
    }

    fn needs(&self, permit: &Permit) -> Result<(), ProviderError> {
        let host = &self.maker.setup.host;
        if permit.covers(host) {
            return Ok(());
        }
        Err(ProviderError::Refused { host: host.clone(), why: "its lock is not held".into() })
    }
}

#[async_trait]
impl Provider for Proxmox {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        let seen = match &scope.node {
            None => self.maker.look_patiently().await,
            Some(node) => self.maker.look(Interest::Node(node)).await,
        };
        let machines = seen.map_err(|trouble| self.told(trouble))?.iter().map(Seen::machine).collect();
        Ok(HostView::Seen { machines, abilities: Abilities::COMMON })
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        self.needs(permit)?;
        self.carry_out(order).await.map_err(|trouble| self.told(trouble))
    }

    fn is_told(&self) -> bool {
        true
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        self.needs(permit)?;
        self.maker.pin(pin).await.map_err(|trouble| self.told(trouble))
    }

    async fn belongings(&self, of: &Owner) -> Result<Vec<Belonging>, ProviderError> {
        self.maker.belongings(of).await.map_err(|trouble| self.told(trouble))
    }
}

impl Maker {
    /// Writes on a machine what its node said of itself. Once that is settled, what it was given to start with is taken away:
    /// the key in it opens nothing any more.
    async fn pin(self: &Arc<Self>, pin: &Pin) -> Result<Done, Trouble> {
        let not_ours = || Trouble::NotOurs { machine: pin.identity.node.to_string(), expected: pin.uuid };
        let spot = if let Some(known) = self.known(pin.uuid) {
            known.spot
        } else {
            let seen = self.look(Interest::Marks).await?;
            let bearing = seen.into_iter().find(|seen| seen.bears.uuid() == Some(pin.uuid));
            bearing.ok_or_else(not_ours)?.listed.spot
        };
        let (spot, config) = self.verified(&spot.id.to_string(), pin.uuid).await?;
        let Bears::Made(before) = config.bears() else { return Err(not_ours()) };
        if before.marks.identity() != pin.identity {
            return Err(not_ours());
        }
        let after = before.pinned(pin);
        let is_settled = pin.keys.as_ref().is_some_and(|keys| keys.settled);
        let disc = disc_of(&config, pin.uuid).filter(|_| is_settled);
        let snippet = config.word("cicustom").is_some_and(|_| is_settled && self.snippets().is_some());
        if after == *before && disc.is_none() && !snippet {
            return Ok(Done::Unchanged);
        }
        self.write(&spot, pin.uuid, config, |config| {
            // What others wrote meanwhile stays.
            let Bears::Made(now) = config.bears() else { return None };
            let mut pairs = vec![("tags", mark::tags(&now.pinned(pin), &config.tags()))];
            if disc.is_some() {
                pairs.push(("ide2", "none,media=cdrom".into()));
            }
            if snippet {
                // Without the snippet the drive would say something else, and the machine take itself for a new one.
                let drives = config.cloud_init_drives("");
                let unwanted: Vec<String> = drives.into_iter().chain(["cicustom".to_owned()]).collect();
                pairs.push(("delete", unwanted.join(",")));
            }
            Some(pairs)
        })
        .await?;
        self.remember(&spot, &Bears::Made(Box::new(after)));
        match disc {
            Some(volume) => self.remove_volume(&volume).await?,
            None if snippet => self.remove_seed(pin.uuid).await?,
            None => {}
        }
        Ok(Done::Changed)
    }
}
