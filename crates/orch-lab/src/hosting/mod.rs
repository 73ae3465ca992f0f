//! Machines that host others: one whose image has Proxmox VE in it runs the lab's Proxmox VE API inside of itself, on its own
//! loopback, with the tools beside it that a driver uses there.

mod tools;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::certificate::Certificate;
use crate::faults::Faults;
use crate::local_machines::LocalMachines;
use crate::machines::{FirstBoot, Machines, Power, Size, Trouble, Wanted};
use crate::proxmox::{Proxmox, ProxmoxSettings, ProxmoxStorage, ProxmoxTimings, ProxmoxToken};
use crate::serve::{ServeSettings, Serving};
use crate::state;
use crate::told::told;
pub use tools::{is_tool, tool};

/// Where the API answers inside of a machine.
const PORT: u16 = 8006;
/// The token of the tools inside.
const TOOLS: &str = "tools";

/// Machines some of which host others.
pub(crate) struct Hosting {
    machines: LocalMachines,
    folder: PathBuf,
    like: Like,
    /// Those that are served, by their ids.
    served: Mutex<BTreeMap<String, Serving>>,
}

/// How those inside are: as the one around them.
#[derive(Clone)]
pub(crate) struct Like {
    pub(crate) description: Option<PathBuf>,
    pub(crate) timings: ProxmoxTimings,
    /// The images that lie there, with their sizes.
    pub(crate) volumes: BTreeMap<String, u64>,
}

/// What stays the same for a machine that hosts others.
#[derive(Serialize, Deserialize)]
struct Inside {
    secret: String,
    node: String,
}

impl Hosting {
    pub(crate) fn new(machines: LocalMachines, folder: PathBuf, like: Like) -> Arc<Self> {
        Arc::new(Self { machines, folder, like, served: Mutex::default() })
    }

    /// Serves those again that run, as after a restart of whoever served them before.
    pub(crate) fn reopen_soon(self: &Arc<Self>) {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            for id in this.machines.ids() {
                if this.hosts(&id) && this.machines.power(&id).await == Power::On {
                    // A machine that cannot be served now is one whose children cannot be reached; it is served again at its
                    // next start.
                    let _ = this.serve(&id).await;
                }
            }
        });
    }

    /// Whether a machine is made from an image that has Proxmox VE in it.
    fn hosts(&self, id: &str) -> bool {
        self.machines.image(id).is_some_and(|image| has_proxmox_in_it(&image))
    }

    fn folder_of(&self, id: &str) -> PathBuf {
        self.folder.join(id.replace('/', "_"))
    }

    fn inside(&self, id: &str, node: Option<&str>) -> Result<(Inside, Certificate), Trouble> {
        let folder = self.folder_of(id);
        let failed = |error: &dyn std::error::Error| Trouble(told(error));
        state::make_folder(&folder).map_err(|error| failed(&error))?;
        let file = folder.join("inside.json");
        let known: Option<Inside> = state::read(&file).map_err(|error| failed(&error))?;
        let new = || Inside { secret: Uuid::new_v4().to_string(), node: node.unwrap_or("pve").to_owned() };
        let inside = known.unwrap_or_else(new);
        state::write(&file, &inside).map_err(|error| failed(&error))?;
        let names = ["127.0.0.1".to_owned()];
        let certificate = Certificate::kept(&folder.join("certificate.json"), &names);
        Ok((inside, certificate.map_err(|error| failed(&error))?))
    }

    /// Serves the API inside of a machine that runs.
    async fn serve(&self, id: &str) -> Result<(), Trouble> {
        let mut served = self.served.lock().await;
        if served.contains_key(id) {
            return Ok(());
        }
        let (inside, certificate) = self.inside(id, None)?;
        let folder = self.folder_of(id);
        let machines = Self::new(self.machines.inside(id), folder.join("inside"), self.like.clone());
        machines.reopen_soon();
        let files = Some(folder.join("files"));
        let contents = ["iso", "vztmpl", "snippets", "import", "backup"];
        let storages = vec![
            ProxmoxStorage { folder: files, ..ProxmoxStorage::new("local", "dir", &contents) },
            ProxmoxStorage::new("local-lvm", "lvmthin", &["images", "rootdir"]),
        ];
        let settings = ProxmoxSettings {
            state: Some(folder.join("api.json")),
            tokens: vec![ProxmoxToken::of_root(TOOLS, &inside.secret)],
            description: self.like.description.clone(),
            timings: self.like.timings.clone(),
            volumes: self.like.volumes.clone(),
            storages,
            ..ProxmoxSettings::new(inside.node, machines, Faults::default())
        };
        let api = Proxmox::new(settings).map_err(|error| Trouble(told(&error)))?;
        let listener = self.machines.listen_inside(id, PORT).await?;
        let serving = Serving::begin(listener, &certificate, Arc::new(api), ServeSettings::default());
        served.insert(id.to_owned(), serving.map_err(|error| Trouble(told(&error)))?);
        Ok(())
    }

    async fn end(&self, id: &str) {
        if let Some(serving) = self.served.lock().await.remove(id) {
            serving.end().await;
        }
    }
}

/// Whether an image says by its name that Proxmox VE is in it. What the storage is called that it lies in says nothing.
fn has_proxmox_in_it(image: &str) -> bool {
    let name = image.rsplit(['/', ':']).next().unwrap_or(image);
    name.contains("pve") || name.contains("proxmox")
}

#[async_trait]
impl Machines for Hosting {
    async fn make(&self, wanted: &Wanted) -> Result<(), Trouble> {
        self.machines.make(wanted).await
    }

    async fn start(&self, id: &str, first: &FirstBoot) -> Result<(), Trouble> {
        if !self.hosts(id) {
            return self.machines.start(id, first).await;
        }
        let (inside, certificate) = self.inside(id, Some(&first.hostname))?;
        let vendor_data = tools::vendor_data(&inside.secret, &certificate.fingerprint()).into_bytes();
        self.machines.start(id, &FirstBoot { vendor_data, ..first.clone() }).await?;
        self.serve(id).await
    }

    async fn stop(&self, id: &str) -> Result<(), Trouble> {
        self.end(id).await;
        self.machines.stop(id).await
    }

    async fn resize(&self, id: &str, size: Size) -> Result<(), Trouble> {
        self.machines.resize(id, size).await
    }

    async fn remove(&self, id: &str) -> Result<(), Trouble> {
        self.end(id).await;
        self.machines.remove(id).await?;
        let folder = self.folder_of(id);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Trouble(error.to_string())),
            _ => Ok(()),
        }
    }

    async fn power(&self, id: &str) -> Power {
        self.machines.power(id).await
    }

    async fn address(&self, id: &str) -> Option<IpAddr> {
        self.machines.address(id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_proxmox_in_it_by_its_own_name_and_not_by_its_storage() {
        for image in ["local:import/pve-9.qcow2", "nfs:iso/proxmox-ve_9.iso", "pve-template"] {
            assert!(has_proxmox_in_it(image), "{image}");
        }
        for image in ["pve-nfs:import/debian-13.qcow2", "pve-nfs:base-9000-disk-0", "debian-13", ""] {
            assert!(!has_proxmox_in_it(image), "{image}");
        }
    }
}
