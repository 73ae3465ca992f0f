//! A project at Hetzner Cloud as a host: each node is a server.
//!
//! What is known of a server is in its labels; nothing is kept on this computer. Beside servers a site has an SSH key,
//! private networks and a firewall there, and a manifest whose servers are kept apart has groups for that. All of it bears the
//! site's mark. What bears no mark of ours is never changed, and no protection is ever switched off.

mod alter;
mod answer;
mod belong;
mod call;
mod cost;
mod decode;
mod destroy;
mod elsewhere;
mod ensure;
mod firewall;
mod group;
mod make;
mod network;
mod pace;
mod pacer;
mod preflight;
mod provider;
mod see;
mod settle;
mod trouble;
#[doc(hidden)]
pub mod untrusted;
mod watch;
mod way;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch_model::{HostName, NodeName, SiteName, UserName};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::api::Client;
use crate::push::Uploaded;
use call::Caller;
use ensure::Ensured;
use group::Groups;
pub use pace::Pace;
use watch::Watch;
use way::Known;

/// What a project at Hetzner Cloud is spoken to with.
#[derive(Clone)]
pub struct HetznerSetup {
    /// The host.
    pub host: HostName,
    /// The site whose nodes live there.
    pub site: SiteName,
    /// What its file says.
    pub hetzner: orch_model::Hetzner,
    /// Who speaks to the API; its address ends in the version.
    pub client: Arc<Client>,
    /// The account that orch comes in with.
    pub user: UserName,
    /// The driver's private key; it is made when it is first needed.
    pub identity: PathBuf,
    /// The server type of each node of the fleet.
    pub server_types: BTreeMap<NodeName, String>,
    /// The ports at which the SSH servers of nodes answer once they are configured: a firewall of ours lets them through.
    pub ssh_ports: BTreeMap<NodeName, u16>,
    /// How long a server may take until its SSH server answers; nothing where it counts as made without that.
    pub reach: Option<Duration>,
    /// The program that is brought to nodes, where images do not have it.
    pub program: Arc<Uploaded>,
    /// How patient to be.
    pub pace: Pace,
}

/// A project at Hetzner Cloud as a host. Copies are the same.
#[derive(Clone)]
pub struct Hetzner {
    inner: Arc<Inner>,
}

struct Inner {
    setup: HetznerSetup,
    caller: Arc<Caller>,
    watch: Arc<Watch>,
    /// What servers need beside themselves, looked after once.
    ensured: OnceCell<Ensured>,
    groups: Groups,
    /// Where servers are, and by what they are known, as it was last seen.
    known: Mutex<BTreeMap<Uuid, Known>>,
}

impl Hetzner {
    /// A host at Hetzner Cloud. Touches nothing.
    pub fn new(setup: HetznerSetup) -> Self {
        let caller = Arc::new(Caller::new(Arc::clone(&setup.client), setup.pace.clone()));
        let watch = Watch::new(Arc::clone(&caller));
        let (ensured, groups, known) = (OnceCell::new(), Groups::default(), Mutex::default());
        Self { inner: Arc::new(Inner { setup, caller, watch, ensured, groups, known }) }
    }
}
