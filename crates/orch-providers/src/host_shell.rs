//! A Proxmox VE host itself, by SSH: for the few things that its API cannot do. It takes no snippets, and does not say which
//! address goes with a machine whose agent is silent.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{HostName, HostSsh, Identity, Mode, PublicKey};
use orch_run::{Ended, Progress, Target, TransportError};
use serde::Deserialize;
use uuid::Uuid;

use crate::proxmox::{Neighbours, Snippets};
use crate::push::Program;
use crate::remote::{Remote as _, RunAs};
use crate::ssh::{Hop, Ssh, SshSettings, Way, Wayfinder};

/// How long one small step may take.
const STEP: Duration = Duration::from_secs(20);
/// Where a DHCP server of the host writes down whom it gave which address.
const LEASES: &str = "/var/lib/misc/dnsmasq.leases";

/// Where a container has its SSH host key.
const HOST_KEY: &str = "/etc/ssh/ssh_host_ed25519_key.pub";

/// A host that can be gone to.
pub(crate) struct HostShell {
    ssh: Ssh,
    target: Target,
}

impl HostShell {
    /// The host behind these settings; nothing where its keys are not known, since nobody is spoken to who could be anybody.
    pub(crate) fn new(host: &HostName, ssh: &HostSsh, settings: SshSettings) -> Option<Self> {
        if ssh.host_keys.is_empty() {
            return None;
        }
        let hop = Hop {
            alias: format!("host-{host}"),
            address: ssh.address.clone(),
            port: ssh.port,
            user: ssh.user.to_string(),
            host_keys: ssh.host_keys.clone(),
            proxy: None,
            generation: String::new(),
        };
        // Whoever is asked here is the host, and no node of a manifest: these names are for messages.
        let identity = Identity {
            manifest: "host".parse().expect("it is a name"),
            node: host.as_str().parse().ok()?,
            host: host.clone(),
        };
        let target =
            Target { identity, uuid: Uuid::nil(), mode: Mode::Push, progress: Progress::to_nobody() };
        Some(Self { ssh: Ssh::new(Arc::new(Straight(hop)), settings), target })
    }

    async fn run(&self, argv: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        let words: Vec<String> = argv.iter().copied().map(str::to_owned).collect();
        let asked = async {
            let connection = self.ssh.reach(&self.target).await?;
            connection.run(&words, RunAs::Root, input, STEP).await
        };
        let Ended { code, stdout, stderr } = asked.await.map_err(|error| error.to_string())?;
        if code == Some(0) {
            return Ok(stdout);
        }
        let said = String::from_utf8_lossy(&stderr);
        let said = said.lines().next_back().unwrap_or("it said nothing");
        Err(format!("`{}` failed on the host: {}", argv[0], orch_model::printable(said)))
    }

    /// Where a snippet is on the host's disk.
    async fn path(&self, storage: &str, file_name: &str) -> Result<String, String> {
        let shown = self.run(&["pvesm", "path", &format!("{storage}:snippets/{file_name}")], &[]).await?;
        let path = String::from_utf8_lossy(&shown).trim().to_owned();
        let is_meant = Path::new(&path).is_absolute() && path.ends_with(&format!("/{file_name}"));
        if is_meant {
            Ok(path)
        } else {
            Err(format!("storage `{storage}` does not say where its snippets are"))
        }
    }
}

#[async_trait]
impl Snippets for HostShell {
    /// Whole or not at all, and for root's eyes only.
    async fn write(&self, storage: &str, file_name: &str, text: &str) -> Result<(), String> {
        let path = self.path(storage, file_name).await?;
        let draft = format!("{path}.draft");
        self.run(&["install", "-m", "0600", "/dev/null", &draft], &[]).await?;
        self.run(&["dd", "bs=64k", "status=none", &format!("of={draft}")], text.as_bytes()).await?;
        self.run(&["mv", "-f", "-T", "--", &draft, &path], &[]).await.map(drop)
    }

    async fn remove(&self, storage: &str, file_name: &str) -> Result<(), String> {
        let path = self.path(storage, file_name).await?;
        self.run(&["rm", "-f", "--", &path], &[]).await.map(drop)
    }
}

#[async_trait]
impl Neighbours for HostShell {
    async fn address_of(&self, mac: &str) -> Option<IpAddr> {
        if let Ok(shown) = self.run(&["ip", "-j", "neigh"], &[]).await
            && let Some(address) = neighbour(&shown, mac)
        {
            return Some(address);
        }
        lease(&self.run(&["cat", LEASES], &[]).await.ok()?, mac)
    }

    async fn host_keys_of(&self, vmid: u32) -> Vec<PublicKey> {
        let look = ["pct", "exec", &vmid.to_string(), "--", "cat", HOST_KEY];
        let shown = self.run(&look, &[]).await.unwrap_or_default();
        String::from_utf8_lossy(&shown).lines().filter_map(|line| line.trim().parse().ok()).collect()
    }
}

/// One line of the table of neighbours.
#[derive(Deserialize)]
struct Neighbour {
    dst: String,
    #[serde(default)]
    lladdr: Option<String>,
    #[serde(default)]
    state: Vec<String>,
}

/// The address that the table of neighbours has for a hardware address; one of version 4 where there are several.
fn neighbour(table: &[u8], mac: &str) -> Option<IpAddr> {
    let table: Vec<Neighbour> = serde_json::from_slice(table).ok()?;
    let is_it = |entry: &&Neighbour| {
        let has_failed = entry.state.iter().any(|state| state == "FAILED" || state == "INCOMPLETE");
        !has_failed && entry.lladdr.as_ref().is_some_and(|lladdr| lladdr.eq_ignore_ascii_case(mac))
    };
    let addresses = table.iter().filter(is_it).filter_map(|entry| entry.dst.parse::<IpAddr>().ok());
    let routed = addresses.filter(|address| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()));
    routed.min_by_key(IpAddr::is_ipv6)
}

/// The address that was leased to a hardware address: `expiry mac address name id`, a line each.
fn lease(leases: &[u8], mac: &str) -> Option<IpAddr> {
    let text = String::from_utf8_lossy(leases);
    text.lines().rev().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().filter(|word| word.eq_ignore_ascii_case(mac))?;
        words.next()?.parse().ok()
    })
}

/// Straight to the host.
struct Straight(Hop);

#[async_trait]
impl Wayfinder for Straight {
    async fn way(&self, _: &Target) -> Result<Way, TransportError> {
        let sudo = self.0.user != "root";
        Ok(Way { hops: vec![self.0.clone()], program: Program::There("/bin/true".into()), sudo })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_machine_is_found_by_its_hardware_address() {
        let table = br#"[{"dst":"fe80::1","dev":"vmbr0","lladdr":"bc:24:11:00:00:01","state":["STALE"]},
            {"dst":"2001:db8::5","dev":"vmbr0","lladdr":"bc:24:11:00:00:01","state":["STALE"]},
            {"dst":"10.0.0.5","dev":"vmbr0","lladdr":"bc:24:11:00:00:01","state":["REACHABLE"]},
            {"dst":"10.0.0.6","dev":"vmbr0","lladdr":"bc:24:11:00:00:02","state":["FAILED"]},
            {"dst":"10.0.0.7","dev":"vmbr0","state":["FAILED"]}]"#;
        assert_eq!(neighbour(table, "BC:24:11:00:00:01"), "10.0.0.5".parse().ok());
        assert_eq!(neighbour(table, "BC:24:11:00:00:02"), None);
        let leases =
            b"1700000000 bc:24:11:00:00:02 10.0.0.8 web *\n1700000001 bc:24:11:00:00:02 10.0.0.9 web *\n";
        assert_eq!(lease(leases, "BC:24:11:00:00:02"), "10.0.0.9".parse().ok());
        assert_eq!((neighbour(b"nonsense", "x"), lease(b"nonsense", "x")), (None, None));
    }
}
