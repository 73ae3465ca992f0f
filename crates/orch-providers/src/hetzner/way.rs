//! The way to servers: straight to their public address, or to the private one where there is no other.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use orch_run::{Target, TransportError};
use tokio::time::Instant;

use super::Hetzner;
use super::answer::Server;
use crate::cloud::{self, Written};
use crate::push::Program;
use crate::ssh::{Hop, Ssh, SshSettings, Way, Wayfinder};

/// Where a server is, and by what it is known.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) address: IpAddr,
    pub(super) written: Written,
}

impl Hetzner {
    /// The way to its nodes.
    pub fn way(&self, settings: SshSettings) -> Ssh {
        Ssh::new(Arc::new(self.clone()), settings)
    }

    /// Notes where a server is, for those who want to go there.
    pub(super) fn remember(&self, server: &Server) {
        if let (Some(address), Some(written)) = (server.address(), server.written()) {
            let mut known = self.inner.known.lock().expect("nobody panics while holding this");
            known.insert(written.marks.uuid, Known { address, written });
        }
    }

    pub(super) fn forget(&self, uuid: uuid::Uuid) {
        self.inner.known.lock().expect("nobody panics while holding this").remove(&uuid);
    }

    /// Where a node is: as it was last seen, else it is looked for.
    async fn known(&self, target: &Target) -> Result<Known, TransportError> {
        let known =
            || self.inner.known.lock().expect("nobody panics while holding this").get(&target.uuid).cloned();
        if let Some(known) = known() {
            return Ok(known);
        }
        let until = Instant::now() + self.inner.caller.pace.look;
        let found = self.selected(&format!("orch-uuid={}", target.uuid), until).await;
        let found = found.map_err(|error| unreachable(target, error.to_string()))?;
        let server = found.first().ok_or_else(|| unreachable(target, "it does not exist".into()))?;
        self.remember(server);
        known().ok_or_else(|| unreachable(target, format!("server `{}` has no address", server.name)))
    }

    fn program(&self, target: &Target) -> Result<Program, TransportError> {
        let setup = &self.inner.setup;
        if let Some(path) = &setup.hetzner.node_program {
            return Ok(Program::There(path.clone()));
        }
        setup.program.program().map_err(|why| TransportError::Unasked { node: target.identity.clone(), why })
    }
}

#[async_trait]
impl Wayfinder for Hetzner {
    async fn way(&self, target: &Target) -> Result<Way, TransportError> {
        let Known { address, written } = self.known(target).await?;
        let user = self.inner.setup.user.to_string();
        let sudo = user != "root";
        let wanted = self.inner.setup.ssh_ports.get(&target.identity.node).copied();
        let hop = Hop {
            alias: written.marks.node.to_string(),
            address: address.to_string(),
            port: cloud::port(address, written.port, wanted).await,
            user,
            host_keys: written.host_keys(),
            proxy: None,
            generation: written.marks.uuid.to_string(),
        };
        Ok(Way { hops: vec![hop], program: self.program(target)?, sudo })
    }
}

fn unreachable(target: &Target, why: String) -> TransportError {
    TransportError::Unreachable { node: target.identity.clone(), why, evidence: Vec::new() }
}
