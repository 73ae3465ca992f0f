//! The lab as other commands see it: what stands in for the hosts of a site.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orch_lab::{LabFile, LabFileHost};
use orch_model::HostName;
use orch_providers::{Stead, Steads};
use orch_run::{Secret, StateDir};

use crate::args::Cli;
use crate::failure::Failure;
use crate::scene;

/// Where a driver keeps what it does in the lab: apart from what it does for real.
pub(crate) fn driver_folder(state: &StateDir) -> PathBuf {
    orch_lab::driver_folder(&state.lab())
}

/// What stands in for hosts elsewhere; nothing where they are to be spoken to themselves.
pub(crate) fn steads(cli: &Cli) -> Result<Option<Steads>, Failure> {
    if !cli.lab {
        return Ok(None);
    }
    let folder = scene::own_state(cli)?.lab();
    let LabFile { hosts, .. } = orch_lab::read(&folder)?;
    let program = scene::program()?;
    let steads = hosts.iter().map(|(name, host)| Ok((name.clone(), stead(&folder, name, host, &program)?)));
    Ok(Some(Steads(steads.collect::<Result<BTreeMap<HostName, Stead>, Failure>>()?)))
}

fn stead(folder: &Path, name: &HostName, host: &LabFileHost, program: &Path) -> Result<Stead, Failure> {
    let broken =
        |_| Failure::Lab(orch_lab::LabError::Said("`lab.json` does not say where its hosts are".into()));
    Ok(Stead {
        endpoint: host.address().parse().map_err(broken)?,
        fingerprint: host.fingerprint.parse().map_err(broken)?,
        token: Arc::new(Secret::new(host.token.expose().as_bytes().to_vec())),
        node_program: host.node_program.clone(),
        machines: orch_lab::machines_of(folder, name, program),
    })
}
