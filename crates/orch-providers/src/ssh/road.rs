//! The way to a node that is given another system: the shared connection, and new ones.

use std::sync::Arc;

use async_trait::async_trait;
use orch_run::{Target, TransportError};

use super::client::Ssh;
use super::fresh::Fresh;
use super::refusal::Refusal;
use crate::push::Program;
use crate::remote::{Bridge, Remote};
use crate::rollout::{Outside, Road};

/// The way to one node.
pub(super) struct SshRoad<'s> {
    pub(super) ssh: &'s Ssh,
    pub(super) target: &'s Target,
    pub(super) program: Program,
}

#[async_trait]
impl Road for SshRoad<'_> {
    fn program(&self) -> &Program {
        &self.program
    }

    async fn shared(&self) -> Result<Arc<dyn Bridge>, TransportError> {
        Ok(Arc::new(self.ssh.reach(self.target).await?))
    }

    async fn anew(&self) -> Result<Arc<dyn Remote>, TransportError> {
        // It is asked for again: a node that was rebooted may be found elsewhere.
        let way = self.ssh.way(self.target).await?;
        let unknown = |refusal: Refusal| refusal.of(&self.target.identity);
        let config = self.ssh.pool.known(&way.hops).map_err(unknown)?;
        let alias = way.hops.last().map(|hop| hop.alias.clone()).unwrap_or_default();
        let (node, ssh) = (self.target.identity.clone(), self.ssh.settings().ssh.clone());
        Ok(Arc::new(Fresh { node, sudo: way.sudo, ssh, config, alias }))
    }

    async fn outside(&self) -> Result<Option<Outside>, TransportError> {
        let way = self.ssh.way(self.target).await?;
        let unknown = |refusal: Refusal| refusal.of(&self.target.identity);
        let config = self.ssh.pool.known(&way.hops).map_err(unknown)?;
        let Some(hop) = way.hops.last() else { return Ok(None) };
        let is_straight = way.hops.len() == 1 && hop.proxy.is_none();
        Ok(Some(Outside {
            config,
            alias: hop.alias.clone(),
            user: hop.user.clone(),
            address: is_straight.then(|| hop.address.clone()),
            port: hop.port,
            identity: self.ssh.settings().identity.clone(),
        }))
    }
}
