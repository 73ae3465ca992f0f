//! A lab in the stead of hosts: the same manifests and the same hosts, spoken to on this computer.

use std::collections::BTreeMap;
use std::sync::Arc;

use orch_model::{Fingerprint, HostName, Provider, Trust, Url};
use orch_run::Secret;

use crate::local::Setup;

/// What stands in for the hosts of a site. A host that nothing stands in for is not spoken to at all.
#[derive(Clone, Default)]
pub struct Steads(pub BTreeMap<HostName, Stead>);

/// What stands in for one host.
#[derive(Clone)]
pub struct Stead {
    /// Where its API is.
    pub endpoint: Url,
    /// The certificate that it shows.
    pub fingerprint: Fingerprint,
    /// What opens it.
    pub token: Arc<Secret>,
    /// Where its machines have the `orch-node` program.
    pub node_program: Option<String>,
    /// The machines behind it, in whose network nodes find the server that they fetch from.
    pub machines: Option<Setup>,
}

impl Stead {
    /// The host's settings, but spoken to here.
    pub(crate) fn in_place_of(&self, provider: &Provider) -> Provider {
        let mut provider = provider.clone();
        let (endpoint, trust, program) = match &mut provider {
            Provider::Local => return provider,
            Provider::Proxmox(host) => (&mut host.api_endpoint, &mut host.trust, &mut host.node_program),
            Provider::Hetzner(host) => (&mut host.api_endpoint, &mut host.trust, &mut host.node_program),
        };
        *endpoint = self.endpoint.clone();
        *trust = Trust::Fingerprint(self.fingerprint.clone());
        program.clone_from(&self.node_program);
        provider
    }
}
