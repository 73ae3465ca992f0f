//! Which API a host has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::exchange::Api;
use crate::faults::Faults;
use crate::hetzner::{Hetzner, HetznerSettings};
use crate::hosting::{Hosting, Like};
use crate::lab_file::Token;
use crate::local_machines::LocalMachines;
use crate::machines::{Machines, Trouble};
use crate::proxmox::{Proxmox, ProxmoxSettings, ProxmoxStorage, ProxmoxTimings, ProxmoxToken};
use crate::settings::{HostKind, LabHost};
use crate::told::told;

/// How long an action takes where it takes no longer than it must.
const QUICK_ACTION: Duration = Duration::from_millis(5);

/// How large an image is that lies there.
const IMAGE: u64 = 1 << 30;

/// What an API is made with.
pub struct ApiParts {
    /// The host.
    pub host: LabHost,
    /// The machines behind it.
    pub machines: Arc<dyn Machines>,
    /// The same where they are on this computer and not on paper.
    pub local: Option<LocalMachines>,
    /// Where it keeps what it shows.
    pub folder: PathBuf,
    /// What opens it.
    pub token: Token,
    /// The name of the node that it has, where it has one.
    pub node: Option<String>,
    /// Where its disks are, where that has a name.
    pub datastore: Option<String>,
    /// What goes wrong on purpose inside of it.
    pub faults: Faults,
    /// The published description of it, where it is at hand.
    pub description: Option<PathBuf>,
    /// Whether tasks take no longer than they must.
    pub quick: bool,
}

/// Makes APIs.
pub type MakeApi = dyn Fn(ApiParts) -> Result<Arc<dyn Api>, Trouble> + Send + Sync;

/// The API of a host, by what the host is. To be called in a runtime: machines that host others are served by it.
pub fn api(parts: ApiParts) -> Result<Arc<dyn Api>, Trouble> {
    match parts.host.kind {
        HostKind::Proxmox => proxmox(parts),
        HostKind::Hetzner => hetzner(parts),
    }
}

fn proxmox(parts: ApiParts) -> Result<Arc<dyn Api>, Trouble> {
    let timings = if parts.quick { ProxmoxTimings::quick() } else { ProxmoxTimings::default() };
    let files = parts.folder.join("files");
    let volumes: BTreeMap<String, u64> =
        parts.host.volumes.into_iter().map(|volume| (volume, IMAGE)).collect();
    let machines: Arc<dyn Machines> = match parts.local {
        Some(local) => {
            let description = parts.description.clone();
            let like = Like { description, timings: timings.clone(), volumes: volumes.clone() };
            let hosting = Hosting::new(local, parts.folder.join("inside"), like);
            hosting.reopen_soon();
            hosting
        }
        None => parts.machines,
    };
    let mut storages = vec![ProxmoxStorage {
        folder: Some(files.clone()),
        ..ProxmoxStorage::new("local", "dir", &["iso", "vztmpl", "snippets", "import", "backup"])
    }];
    let datastore = parts.datastore.unwrap_or_else(|| "local-lvm".to_owned());
    if datastore == "local" {
        storages[0].content.extend(["images".to_owned(), "rootdir".to_owned()]);
    } else {
        storages.push(ProxmoxStorage::new(&datastore, "zfspool", &["images", "rootdir"]));
    }
    if let Some(snippets) =
        parts.host.snippets.filter(|name| storages.iter().all(|storage| storage.id != *name))
    {
        let folder = Some(files.join(&snippets));
        storages.push(ProxmoxStorage { folder, ..ProxmoxStorage::new(&snippets, "dir", &["snippets"]) });
    }
    let secret = parts.token.expose().rsplit('=').next().unwrap_or_default();
    let settings = ProxmoxSettings {
        state: Some(parts.folder.join("api.json")),
        storages,
        bridges: vec![parts.host.bridge.unwrap_or_else(|| "vmbr0".to_owned())],
        tokens: vec![ProxmoxToken::of_root("orch", secret)],
        description: parts.description,
        timings,
        volumes,
        ..ProxmoxSettings::new(parts.node.unwrap_or_else(|| "pve".to_owned()), machines, parts.faults)
    };
    Ok(Arc::new(Proxmox::new(settings).map_err(|error| Trouble(told(&error)))?))
}

fn hetzner(parts: ApiParts) -> Result<Arc<dyn Api>, Trouble> {
    let mut settings = HetznerSettings {
        token: parts.token.expose().to_owned(),
        state: Some(parts.folder.join("api.json")),
        description: parts.description,
        ..HetznerSettings::new(parts.machines, parts.faults)
    };
    if parts.quick {
        settings.action_time = QUICK_ACTION;
    }
    Ok(Arc::new(Hetzner::open(settings).map_err(|error| Trouble(error.to_string()))?))
}
