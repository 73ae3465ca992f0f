//! The way to nodes on a Proxmox VE: straight to the address that a machine says of itself.

use async_trait::async_trait;
use orch_run::{Target, TransportError};
use tokio::time::Instant;

use super::guest::GuestKind;
use super::look::Interest;
use super::maker::Known;
use super::provider::Proxmox;
use crate::cloud;
use crate::push::Program;
use crate::ssh::{Hop, Way, Wayfinder};

#[async_trait]
impl Wayfinder for Proxmox {
    async fn way(&self, target: &Target) -> Result<Way, TransportError> {
        let unreachable = |why: String| TransportError::Unreachable {
            node: target.identity.clone(),
            why,
            evidence: Vec::new(),
        };
        let maker = &self.maker;
        let Known { spot, written, .. } = self.found(target).await?;
        let written = written.ok_or_else(|| unreachable("it is not made yet".into()))?;
        let mut host_keys = written.host_keys();
        if let (true, Some(neighbours)) = (host_keys.is_empty(), &maker.setup.neighbours) {
            host_keys = neighbours.host_keys_of(spot.id.vmid).await;
        }
        if host_keys.is_empty() {
            let why = "no SSH host key is known of it: Proxmox cannot give a container one when it is made";
            return Err(unreachable(why.into()));
        }
        let limit = maker.setup.reach.unwrap_or(maker.pace().agent);
        let address = maker.address(&spot, target.uuid, Instant::now() + limit).await;
        let address = address.map_err(|trouble| unreachable(trouble.to_string()))?;
        let wanted = maker.setup.ssh_ports.get(&target.identity.node).copied();
        // What is inside of a node cannot be knocked at from here.
        let wanted = wanted.filter(|_| maker.setup.parent.is_none());
        // Proxmox opens containers for root alone.
        let user = if spot.id.kind == GuestKind::Lxc { "root" } else { maker.setup.user.as_str() };
        let hop = Hop {
            alias: target.identity.node.to_string(),
            address: address.to_string(),
            port: cloud::port(address, written.port, wanted).await,
            user: user.to_owned(),
            host_keys,
            proxy: None,
            generation: target.uuid.to_string(),
        };
        Ok(Way { hops: vec![hop], program: self.program(target)?, sudo: user != "root" })
    }
}

impl Proxmox {
    /// What is known of a machine; it is looked for where nothing is.
    async fn found(&self, target: &Target) -> Result<Known, TransportError> {
        let maker = &self.maker;
        let known = maker.known(target.uuid).filter(|known| known.written.is_some());
        if let Some(known) = known {
            return Ok(known);
        }
        let unreachable = |why: String| TransportError::Unreachable {
            node: target.identity.clone(),
            why,
            evidence: Vec::new(),
        };
        maker
            .look(Interest::Node(&target.identity))
            .await
            .map_err(|trouble| unreachable(trouble.to_string()))?;
        maker.known(target.uuid).ok_or_else(|| unreachable("it does not exist".into()))
    }

    fn program(&self, target: &Target) -> Result<Program, TransportError> {
        let setup = &self.maker.setup;
        if let Some(path) = &setup.proxmox.node_program {
            return Ok(Program::There(path.clone()));
        }
        setup.program.program().map_err(|why| TransportError::Unasked { node: target.identity.clone(), why })
    }
}
