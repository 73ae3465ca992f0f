//! A host's file and the site's defaults to a host in which everything is known.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::decode::Within;
use crate::files::{Host as HostFile, HostSsh as HostSshFile, Site};
use crate::fleet::{Hetzner, Host, HostSsh, Provider, Proxmox, Trust};
use crate::word::{Fingerprint, HostName, Url, UserName};

pub(super) fn resolve(name: &HostName, file: &HostFile, site: &Site) -> Result<Host, String> {
    let defaults = file.defaults().or(&site.defaults());
    let provider = match file {
        HostFile::Local(_) => Provider::Local,
        HostFile::Proxmox(host) => Provider::Proxmox(Proxmox {
            api_endpoint: host.api_endpoint.clone(),
            api_token: host.api_token.clone(),
            trust: trust(host.tls_fingerprint.as_ref(), host.ca_file.as_ref()),
            node: host.node.clone().unwrap_or_else(|| name.as_str().to_owned()),
            datastore: host.datastore.clone(),
            bridge: defaults.bridge.clone().unwrap_or_else(|| "vmbr0".parse().expect("vmbr0 names a bridge")),
            vlan: host.vlan.map(Within::get),
            vmid_range: host.vmid_range,
            pool: host.pool.clone(),
            snippets: host.snippets.clone(),
            node_program: host.node_program.clone(),
        }),
        HostFile::Hetzner(host) => Provider::Hetzner(Hetzner {
            token: host.token.clone(),
            api_endpoint: host.api_endpoint.clone().unwrap_or_else(hetzner_api),
            trust: trust(host.tls_fingerprint.as_ref(), host.ca_file.as_ref()),
            location: host.location.clone(),
            fallback_locations: host.fallback_locations.clone(),
            server_types: host.server_types.clone(),
            networks: host.networks.clone(),
            firewall: host.firewall.clone(),
            spread: host.spread,
            node_program: host.node_program.clone(),
        }),
        HostFile::K3s(_) => return Err(format!("host `{name}` runs workloads (k3s) and takes no nodes")),
    };
    Ok(Host {
        name: name.clone(),
        provider,
        ssh: file.ssh().map(|ssh| resolve_ssh(name, ssh)),
        node_user: defaults.node_user.unwrap_or_else(UserName::root),
        server_url: defaults.server_url,
    })
}

fn trust(fingerprint: Option<&Fingerprint>, ca_file: Option<&String>) -> Trust {
    match (fingerprint, ca_file) {
        (Some(fingerprint), _) => Trust::Fingerprint(fingerprint.clone()),
        (None, Some(file)) => Trust::CaFile(file.clone()),
        (None, None) => Trust::System,
    }
}

fn hetzner_api() -> Url {
    "https://api.hetzner.cloud/v1".parse().expect("this is an address")
}

fn resolve_ssh(name: &HostName, ssh: &HostSshFile) -> HostSsh {
    HostSsh {
        user: ssh.user.clone(),
        address: ssh.address.clone().unwrap_or_else(|| name.as_str().to_owned()),
        port: u16::try_from(ssh.port.get()).expect("a port is at most 65535"),
        host_keys: ssh.host_keys.clone(),
        identity: ssh.identity.clone(),
        jump: ssh.jump.as_deref().cloned(),
    }
}
