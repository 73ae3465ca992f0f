//! The provider: what the plan orders, done at Hetzner Cloud.

use async_trait::async_trait;
use orch_plan::{Action, HostView};
use orch_run::{Belonging, Done, Order, Owner, Permit, Pin, Provider, ProviderError, Scope};

use super::Hetzner;
use super::trouble::CallError;

#[async_trait]
impl Provider for Hetzner {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        self.view(scope.node.as_ref()).await.map_err(|error| self.told(error))
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        self.needs(permit)?;
        let done = match &order.action {
            Action::Create { machine } => self.create(order, machine).await,
            Action::Adopt { found, machine } => self.adopt(order, found, machine).await,
            Action::Resize { machine, to, .. } => self.resize(order, machine, *to).await,
            Action::Start { machine } => self.start(order, machine).await,
            Action::Destroy { machine } => self.destroy(order, machine).await,
            Action::Configure { .. } => Err(CallError::Refused("configurations are the transport's".into())),
        };
        done.map_err(|error| self.told(error))
    }

    fn is_told(&self) -> bool {
        true
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        self.needs(permit)?;
        self.note(pin).await.map_err(|error| self.told(error))
    }

    async fn tidy(&self, of: &Owner, permit: &Permit) -> Result<(), ProviderError> {
        self.needs(permit)?;
        let Some(manifest) = &of.manifest else { return Ok(()) };
        self.tidy_groups(manifest, self.deadline()).await.map_err(|error| self.told(error))
    }

    async fn belongings(&self, of: &Owner) -> Result<Vec<Belonging>, ProviderError> {
        self.possessions(of).await.map_err(|error| self.told(error))
    }
}

impl Hetzner {
    fn needs(&self, permit: &Permit) -> Result<(), ProviderError> {
        let host = &self.inner.setup.host;
        if permit.covers(host) {
            return Ok(());
        }
        Err(ProviderError::Refused { host: host.clone(), why: "its lock is not held".into() })
    }

    fn told(&self, error: CallError) -> ProviderError {
        error.told(&self.inner.setup.host)
    }
}
