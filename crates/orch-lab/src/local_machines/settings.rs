//! How machines on this computer are made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_model::HostName;
use uuid::Uuid;

use crate::addresses::Addresses;

/// How machines on this computer are made.
#[derive(Clone)]
pub struct LocalMachinesSettings {
    /// Where they are kept.
    pub folder: PathBuf,
    /// The host whose machines they are.
    pub host: HostName,
    /// Tells the machines of this lab from those of others.
    pub lab: Uuid,
    /// The `orch` program, which is what makes them.
    pub program: PathBuf,
    /// The folder that paths of images are relative to.
    pub site: PathBuf,
    /// What the API calls an image, and what it is for the local provider. One that is not here is made from this machine's
    /// own programs.
    pub images: BTreeMap<String, String>,
    /// Where machines answer.
    pub addresses: Arc<Addresses>,
    /// At which ports.
    pub ports: Vec<u16>,
    /// How long a machine may take until its SSH server answers.
    pub reach: Duration,
    /// How long its first boot may take after that.
    pub first_boot: Duration,
}

impl LocalMachinesSettings {
    /// The usual ones.
    pub fn new(
        folder: PathBuf,
        host: HostName,
        lab: Uuid,
        program: PathBuf,
        addresses: Arc<Addresses>,
    ) -> Self {
        Self {
            site: folder.clone(),
            folder,
            host,
            lab,
            program,
            images: BTreeMap::new(),
            addresses,
            ports: vec![22, 2222],
            reach: Duration::from_mins(1),
            first_boot: Duration::from_mins(15),
        }
    }
}
