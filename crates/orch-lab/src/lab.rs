//! A lab in this process: its hosts, each with its API, its machines and what goes wrong with it.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use orch_model::HostName;
use orch_run::start_of;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::addresses::Addresses;
use crate::apis::{ApiParts, MakeApi};
use crate::certificate::Certificate;
use crate::faults::Faults;
use crate::lab_error::LabError;
use crate::lab_file::{LabFile, LabFileHost, LabFolder, Token, read, write};
use crate::listen::listen;
use crate::local_machines::{LocalMachines, LocalMachinesSettings};
use crate::machines::{Machines, Paper};
use crate::serve::{Calls, ServeSettings, Serving};
use crate::settings::{HostKind, LabHost, LabSettings};
use crate::state;

/// What the node of a Proxmox VE box is called, and where its disks are.
const NODE: &str = "pve";
const DATASTORE: &str = "local-lvm";
/// Where machines of this computer have the program that configures them.
const NODE_PROGRAM: &str = "/run/orch/orch-node";

/// What stays the same whenever a lab comes up again.
#[derive(Serialize, Deserialize)]
struct Identity {
    lab: Uuid,
    tokens: BTreeMap<HostName, Token>,
    /// Where hosts are served that were given any port.
    ports: BTreeMap<HostName, u16>,
}

/// A lab that is served by this process until it is told to end.
pub struct Lab {
    hosts: BTreeMap<HostName, Host>,
    file: LabFile,
    _addresses: Arc<Addresses>,
}

struct Host {
    faults: Faults,
    serving: Serving,
    machines: Arc<dyn Machines>,
    local: Option<LocalMachines>,
}

impl Lab {
    /// Serves a lab, with whatever a lab in the same folder left: endpoints, certificates, tokens and machines are the same
    /// again. `make` makes the APIs.
    pub async fn begin(settings: &LabSettings, make: &MakeApi) -> Result<Self, LabError> {
        let folder = LabFolder::at(&settings.folder);
        state::make_folder(folder.path()).map_err(LabError::file(folder.path()))?;
        let mut identity = read_identity(&folder)?;
        let addresses = Addresses::hold(&folder.addresses())?;
        let mut hosts = BTreeMap::new();
        let mut told = BTreeMap::new();
        for host in &settings.hosts {
            let found = Plot { settings, folder: &folder, host, addresses: &addresses };
            let (running, shown) = found.serve(&mut identity, make).await?;
            told.insert(host.name.clone(), shown);
            hosts.insert(host.name.clone(), running);
        }
        let (pid, lab) = (std::process::id(), identity.lab);
        let file = LabFile { lab, pid, started: start_of(pid).unwrap_or_default(), hosts: told };
        write(&folder.file(), &file)?;
        Ok(Self { hosts, file, _addresses: addresses })
    }

    /// What it says of itself.
    pub const fn file(&self) -> &LabFile {
        &self.file
    }

    /// The names of its hosts.
    pub fn names(&self) -> impl Iterator<Item = &HostName> {
        self.hosts.keys()
    }

    /// What goes wrong with a host.
    pub fn faults(&self, host: &HostName) -> Option<&Faults> {
        self.hosts.get(host).map(|host| &host.faults)
    }

    /// What a host was asked.
    pub fn calls(&self, host: &HostName) -> Option<&Calls> {
        self.hosts.get(host).map(|host| host.serving.calls())
    }

    /// The machines of a host.
    pub fn machines(&self, host: &HostName) -> Option<&Arc<dyn Machines>> {
        self.hosts.get(host).map(|host| &host.machines)
    }

    /// Serves nothing any more. Machines go on, and answer nobody.
    pub async fn end(self) {
        for host in self.hosts.into_values() {
            host.serving.end().await;
            if let Some(local) = host.local {
                local.close().await;
            }
        }
    }
}

/// One host that is to be served, and what it is made from.
struct Plot<'l> {
    settings: &'l LabSettings,
    folder: &'l LabFolder,
    host: &'l LabHost,
    addresses: &'l Arc<Addresses>,
}

impl Plot<'_> {
    async fn serve(&self, identity: &mut Identity, make: &MakeApi) -> Result<(Host, LabFileHost), LabError> {
        let (name, kind) = (self.host.name.clone(), self.host.kind);
        let folder = self.folder.host(&name);
        state::make_folder(&folder).map_err(LabError::file(&folder))?;
        let address = self.addresses.of_api(&name)?;
        let port =
            identity.ports.get(&name).copied().filter(|_| self.host.port == 0).unwrap_or(self.host.port);
        let listener = self.listen(SocketAddr::from((address, port)))?;
        let at = listener.local_addr().map_err(LabError::file(&folder))?;
        let token = identity.tokens.entry(name.clone()).or_insert_with(|| Token::make(kind)).clone();
        identity.ports.insert(name.clone(), at.port());
        // Before anything can be seen of it.
        write(&self.folder.identity(), identity)?;
        let certificate = Certificate::kept(&folder.join("certificate.json"), &[address.to_string()])?;
        let (machines, local) = self.machines(identity.lab).await?;
        let is_proxmox = kind == HostKind::Proxmox;
        let shown = LabFileHost {
            kind,
            endpoint: format!("https://{at}"),
            fingerprint: certificate.fingerprint(),
            token: token.clone(),
            node: is_proxmox.then(|| self.host.node.clone().unwrap_or_else(|| NODE.to_owned())),
            datastore: is_proxmox
                .then(|| self.host.datastore.clone().unwrap_or_else(|| DATASTORE.to_owned())),
            node_program: local.as_ref().map(|_| NODE_PROGRAM.to_owned()),
        };
        let faults = Faults::default();
        let parts = ApiParts {
            host: self.host.clone(),
            machines: Arc::clone(&machines),
            local: local.clone(),
            folder: folder.clone(),
            token,
            node: shown.node.clone(),
            datastore: shown.datastore.clone(),
            faults: faults.clone(),
            description: self.description(),
            quick: self.settings.quick,
        };
        let failed = |source| LabError::Machines { host: name.clone(), source };
        let api = make(parts).map_err(failed)?;
        let settings = ServeSettings {
            faults: faults.clone(),
            latency: self.settings.latency,
            ..ServeSettings::default()
        };
        let serving = Serving::begin(listener, &certificate, api, settings)
            .map_err(|source| LabError::Serve { host: name.clone(), source })?;
        Ok((Host { faults, serving, machines, local }, shown))
    }

    /// The published description of its API, where it is at hand.
    fn description(&self) -> Option<PathBuf> {
        let file = self.settings.descriptions.as_ref()?.join(self.host.kind.description());
        file.exists().then_some(file)
    }

    fn listen(&self, at: SocketAddr) -> Result<TcpListener, LabError> {
        listen(at).map_err(|source| LabError::Listen { host: self.host.name.clone(), at, source })
    }

    async fn machines(&self, lab: Uuid) -> Result<(Arc<dyn Machines>, Option<LocalMachines>), LabError> {
        if self.settings.paper {
            return Ok((Arc::new(Paper::default()), None));
        }
        let failed = |source| LabError::Machines { host: self.host.name.clone(), source };
        let local =
            LocalMachines::open(machine_settings(self.settings, self.folder, self.host, lab, self.addresses))
                .map_err(failed)?;
        local.reopen().await.map_err(failed)?;
        Ok((Arc::new(local.clone()), Some(local)))
    }
}

/// How the machines of a host are made.
fn machine_settings(
    settings: &LabSettings,
    folder: &LabFolder,
    host: &LabHost,
    lab: Uuid,
    addresses: &Arc<Addresses>,
) -> LocalMachinesSettings {
    let (place, program) = (folder.host(&host.name), settings.program.clone());
    let usual = LocalMachinesSettings::new(place, host.name.clone(), lab, program, Arc::clone(addresses));
    LocalMachinesSettings { images: host.images.clone(), ports: settings.ports.clone(), ..usual }
}

/// Who the lab is: as it was before, or somebody new.
fn read_identity(folder: &LabFolder) -> Result<Identity, LabError> {
    let new = || Identity { lab: Uuid::new_v4(), tokens: BTreeMap::new(), ports: BTreeMap::new() };
    Ok(read(&folder.identity())?.unwrap_or_else(new))
}
