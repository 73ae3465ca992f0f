//! Hosts that are NixOS themselves, as if each were a node of its own: they are there, nobody makes them, and they are given
//! systems.
//!
//! What makes a host ours is the key that it shows: only those are spoken to whose host file has it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{ApplyReport, ApplyStatus, Host, Identity, Mode, SiteName, Size};
use orch_plan::{Abilities, Applied, HostView, Keys, Machine, MachineState, Marks};
use orch_run::{Done, Order, Permit, Progress, Provider, ProviderError, Scope, Target, TransportError};
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use crate::push::Uploaded;
use crate::remote::{Remote as _, RunAs};
use crate::ssh::{Hop, Ssh, Way, Wayfinder};

/// Where a node writes down what it became.
const COMPLETE: &str = "/var/lib/orch/complete.json";

/// How long that may take to be read.
const READ: Duration = Duration::from_secs(20);

/// The name under which hosts themselves are nodes.
pub(crate) const MANIFEST: &str = "host";

/// A host as a node.
pub(crate) struct HostSystem {
    host: Host,
    site: SiteName,
    /// How it is gone to.
    ssh: Arc<Ssh>,
}

impl HostSystem {
    pub(crate) const fn new(host: Host, site: SiteName, ssh: Arc<Ssh>) -> Self {
        Self { host, site, ssh }
    }

    fn target(&self) -> Option<Target> {
        let identity = identity(&self.host)?;
        let uuid = mark(&self.site, &identity);
        Some(Target { identity, uuid, mode: Mode::Push, progress: Progress::to_nobody() })
    }

    /// Which configuration it says it has.
    async fn applied(&self, target: &Target) -> Result<Applied, TransportError> {
        let node = self.ssh.reach(target).await?;
        let read = ["cat".to_owned(), COMPLETE.to_owned()];
        let ended = node.run(&read, RunAs::Root, &[], READ).await?;
        let report: Option<ApplyReport> = serde_json::from_slice(&ended.stdout).ok();
        let is_its_own =
            |report: &ApplyReport| report.status == ApplyStatus::Complete && report.node == target.identity;
        let digest = report.filter(|report| ended.code == Some(0) && is_its_own(report));
        Ok(digest.map_or(Applied::Never, |report| Applied::Digest(report.spec_digest)))
    }

    fn machine(&self, target: &Target, applied: Applied) -> Machine {
        let identity = &target.identity;
        Machine {
            id: self.host.name.to_string(),
            name: self.host.name.to_string(),
            marks: Some(Marks {
                site: self.site.clone(),
                manifest: identity.manifest.clone(),
                node: identity.node.clone(),
                host: identity.host.clone(),
                uuid: target.uuid,
            }),
            inside: None,
            state: MachineState::Running,
            // Nobody gives it another one.
            size: Size { cores: 0, memory: 0, disk: 0 },
            kind: None,
            image: None,
            vmid: None,
            applied,
            keys: Keys::Unknown,
        }
    }
}

/// A host as a node; nothing where its name cannot be a node's.
pub(crate) fn identity(host: &Host) -> Option<Identity> {
    Some(Identity {
        manifest: MANIFEST.parse().ok()?,
        node: host.name.as_str().parse().ok()?,
        host: host.name.clone(),
    })
}

/// The mark of a host: nobody wrote one on it, so it is made of what it is called.
fn mark(site: &SiteName, identity: &Identity) -> Uuid {
    let digest = Sha256::digest(format!("orch host\n{site}\n{identity}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[async_trait]
impl Provider for HostSystem {
    /// One question over the connection that everything else goes by.
    async fn observe(&self, _: &Scope) -> Result<HostView, ProviderError> {
        let Some(target) = self.target() else {
            return Ok(HostView::Unreachable { why: "its name cannot be the name of a node".into() });
        };
        Ok(match self.applied(&target).await {
            Ok(applied) => HostView::Seen {
                machines: vec![self.machine(&target, applied)],
                abilities: Abilities::COMMON,
            },
            Err(error) => HostView::Unreachable { why: error.to_string() },
        })
    }

    async fn apply(&self, order: &Order, _: &Permit) -> Result<Done, ProviderError> {
        let why = format!(
            "`{}` is a host itself: it is given systems, and neither made nor taken down",
            order.identity.node
        );
        Err(ProviderError::Refused { host: self.host.name.clone(), why })
    }
}

/// The way to a host: straight, or through the hosts before it.
pub(crate) struct HostWay {
    pub(crate) hops: Vec<Hop>,
    pub(crate) program: Arc<Uploaded>,
}

impl HostWay {
    /// A host as a hop; in words, why it cannot be one, and the way out.
    pub(crate) fn hop(host: &Host) -> Result<Hop, (String, String)> {
        let name = &host.name;
        let how = format!(
            "say in the file of `{name}` how it is reached: `ssh: {{ address: …, host_keys: [...] }}`"
        );
        let Some(ssh) = &host.ssh else {
            return Err(("its file does not say how it is reached".into(), how));
        };
        if ssh.host_keys.is_empty() {
            return Err(("its file has none of its host keys".into(), how));
        }
        Ok(Hop {
            alias: format!("host-{name}"),
            address: ssh.address.clone(),
            port: ssh.port,
            user: ssh.user.to_string(),
            host_keys: ssh.host_keys.clone(),
            proxy: None,
            generation: String::new(),
        })
    }

    /// The private key that its file names, by a path that holds wherever it is used.
    pub(crate) fn identity(host: &Host, site: &std::path::Path) -> Option<PathBuf> {
        Some(site.join(host.ssh.as_ref()?.identity.as_ref()?))
    }
}

#[async_trait]
impl Wayfinder for HostWay {
    async fn way(&self, target: &Target) -> Result<Way, TransportError> {
        let unread = |why| TransportError::Unasked { node: target.identity.clone(), why };
        let program = self.program.program().map_err(unread)?;
        let sudo = self.hops.last().is_some_and(|hop| hop.user != "root");
        Ok(Way { hops: self.hops.clone(), program, sudo })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_a_host_is_the_same_each_time_and_another_for_every_host_and_site() {
        let (one, other): (SiteName, SiteName) = ("home".parse().unwrap(), "work".parse().unwrap());
        let node = |name: &str| format!("host.{name}@{name}").parse::<Identity>().unwrap();
        assert_eq!(mark(&one, &node("father")), mark(&one, &node("father")));
        assert_ne!(mark(&one, &node("father")), mark(&one, &node("mother")));
        assert_ne!(mark(&one, &node("father")), mark(&other, &node("father")));
    }
}
