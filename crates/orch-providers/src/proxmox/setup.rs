//! What a Proxmox VE is spoken to with, and what can be done for it only by others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{HostName, NodeName, PublicKey, UserName};

use super::pace::Pace;
use crate::api::Client;
use crate::push::Uploaded;

/// What a Proxmox VE as a host is made with.
#[derive(Clone)]
pub struct ProxmoxSetup {
    /// The host.
    pub host: HostName,
    /// How it is spoken to, and where its machines go.
    pub proxmox: orch_model::Proxmox,
    /// Who speaks to it.
    pub client: Arc<Client>,
    /// The account that orch comes in with.
    pub user: UserName,
    /// The file of the private key that opens machines; it is made where it is not there.
    pub identity: PathBuf,
    /// Names that nodes of this fleet have or could have.
    pub names: BTreeSet<String>,
    /// VMIDs that nodes insist on.
    pub vmids: BTreeSet<u32>,
    /// The ports at which the SSH servers of nodes answer once they are configured.
    pub ssh_ports: BTreeMap<NodeName, u16>,
    /// How long a machine may take until its SSH server answers; nothing where a machine counts as made without that.
    pub reach: Option<Duration>,
    /// The node whose own Proxmox VE this is, where it is not the host's: that node's children are made here.
    pub parent: Option<NodeName>,
    /// The program that is brought to nodes, where images do not have it.
    pub program: Arc<Uploaded>,
    /// Who writes snippets, where the host has a storage for them.
    pub snippets: Option<Arc<dyn Snippets>>,
    /// Who else knows the addresses of machines.
    pub neighbours: Option<Arc<dyn Neighbours>>,
    /// How long things are waited for.
    pub pace: Pace,
}

/// Writes snippets: the API cannot, so whoever does goes to the host itself.
#[async_trait]
pub trait Snippets: Send + Sync {
    /// Writes one, over the one of that name that may be there; in words, why not.
    async fn write(&self, storage: &str, file_name: &str, text: &str) -> Result<(), String>;

    /// Removes one; one that is gone is gone.
    async fn remove(&self, storage: &str, file_name: &str) -> Result<(), String>;
}

/// Knows of machines what they do not say themselves, by looking from the host: addresses by its table of neighbours or its
/// leases.
#[async_trait]
pub trait Neighbours: Send + Sync {
    /// The address that goes with a hardware address, where somebody has seen both.
    async fn address_of(&self, mac: &str) -> Option<IpAddr>;

    /// The SSH host keys of a container, read by looking into it: Proxmox can give it none when it is made.
    async fn host_keys_of(&self, _vmid: u32) -> Vec<PublicKey> {
        Vec::new()
    }
}
