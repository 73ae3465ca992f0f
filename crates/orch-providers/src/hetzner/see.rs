//! What the API shows of servers, as the plan sees machines.

use std::collections::BTreeMap;
use std::net::IpAddr;

use orch_model::{Identity, NodeName, Size};
use orch_plan::{Abilities, Applied, DiskAbility, HostView, Keys, Machine, MachineState};
use tokio::time::Instant;
use uuid::Uuid;

use super::Hetzner;
use super::answer::{OneServer, Server, ServerType};
use super::trouble::CallError;
use crate::api::encode;
use crate::cloud::Written;

/// A type is changed in place; its disk never shrinks.
pub(super) const ABILITIES: Abilities = Abilities { cores: true, memory: true, disk: DiskAbility::Grow };

impl Server {
    /// What is written on it, where it is ours.
    pub(super) fn written(&self) -> Option<Written> {
        Written::read(|name| self.labels.get(name).map(String::as_str))
    }

    /// Whether it bears this mark.
    pub(super) fn bears(&self, uuid: Uuid) -> bool {
        self.written().is_some_and(|written| written.marks.uuid == uuid)
    }

    /// Where it is reached: over the internet, else in a private network.
    pub(super) fn address(&self) -> Option<IpAddr> {
        let public = self.public_net.ipv4.iter().map(|address| address.ip.as_str());
        let private = self.private_net.iter().map(|net| net.ip.as_str());
        public.chain(private).find_map(|text| text.parse().ok())
    }

    /// What it does, as near as the plan can say it.
    pub(super) fn state(&self) -> MachineState {
        match self.status.as_str() {
            "initializing" | "starting" => MachineState::Partial,
            "off" | "stopping" | "deleting" | "migrating" => MachineState::Stopped,
            // Whatever else it does, it is there and is nobody's to finish or to start.
            _ => MachineState::Running,
        }
    }

    pub(super) fn machine(&self, types: &BTreeMap<NodeName, String>) -> Machine {
        let written = self.written();
        let size = size(self, written.as_ref(), types);
        let (id, name, state) = (self.id.to_string(), self.name.clone(), self.state());
        Machine {
            id,
            name,
            state,
            size,
            inside: None,
            kind: None,
            vmid: None,
            image: written.as_ref().and_then(|written| written.image.clone()),
            applied: written.as_ref().map_or(Applied::Unknown, Written::applied),
            keys: written.as_ref().map_or(Keys::Unknown, Written::keys),
            marks: written.map(|written| written.marks),
        }
    }
}

impl ServerType {
    /// How large it is.
    pub(super) fn size(&self) -> Size {
        Size { cores: self.cores, memory: whole(self.memory * 1024.0), disk: whole(self.disk) }
    }
}

/// A number of the API that has no reason to be anything but a small whole one.
fn whole(number: f64) -> u32 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float ends at the bounds"
    )]
    let whole = number.round() as u32;
    whole
}

/// The size that was asked for when the server was made, as long as it has the type that stands for it; else its real one. So
/// another type for the same preset is seen as a difference, and the same type never is. The disk is as it was asked for in
/// either case: types come with more than that, and nobody wants it to shrink to what he asks for next.
fn size(server: &Server, written: Option<&Written>, types: &BTreeMap<NodeName, String>) -> Size {
    let is_as_asked =
        |written: &&Written| types.get(&written.marks.node).is_none_or(|wanted| *wanted == server.kind.name);
    let (real, asked) = (server.kind.size(), written.and_then(|written| written.size));
    let disk = asked.map_or(real.disk, |asked| asked.disk);
    asked.filter(|_| written.is_some_and(|written| is_as_asked(&written))).unwrap_or(Size { disk, ..real })
}

impl Hetzner {
    /// What is there: all of it, for names are taken by strangers too; or what is of interest for one node.
    pub(super) async fn view(&self, node: Option<&Identity>) -> Result<HostView, CallError> {
        let until = Instant::now() + self.inner.caller.pace.look;
        let servers = match node {
            None => self.servers("sort=id", until).await?,
            Some(node) => self.servers_of(node, until).await?,
        };
        for server in &servers {
            self.remember(server);
        }
        let machines = servers.iter().map(|server| server.machine(&self.inner.setup.server_types)).collect();
        Ok(HostView::Seen { machines, abilities: ABILITIES })
    }

    /// Those that bear a node's marks, and whoever has its name.
    async fn servers_of(&self, node: &Identity, until: Instant) -> Result<Vec<Server>, CallError> {
        let selector = format!("orch-manifest={},orch-node={}", node.manifest, node.node);
        let mut servers = self.selected(&selector, until).await?;
        let name = node.plain_name();
        if !servers.iter().any(|server| server.name == name) {
            servers.extend(self.named(&name, until).await?);
        }
        Ok(servers)
    }

    pub(super) async fn selected(&self, selector: &str, until: Instant) -> Result<Vec<Server>, CallError> {
        self.servers(&format!("label_selector={}", encode(selector)), until).await
    }

    pub(super) async fn named(&self, name: &str, until: Instant) -> Result<Option<Server>, CallError> {
        Ok(self.servers(&format!("name={}", encode(name)), until).await?.pop())
    }

    async fn servers(&self, query: &str, until: Instant) -> Result<Vec<Server>, CallError> {
        self.inner.caller.list("/servers", "servers", query, until).await
    }

    /// A server as it is now; nothing where it is gone.
    pub(super) async fn server(&self, id: u64, until: Instant) -> Result<Option<Server>, CallError> {
        match self.inner.caller.get::<OneServer>(&format!("/servers/{id}"), until).await {
            Ok(OneServer { server }) => Ok(Some(server)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cloud::FirstKey;

    fn server(kind: &str, size: Option<Size>) -> Server {
        let marks = orch_plan::Marks {
            site: "home".parse().unwrap(),
            manifest: "lab".parse().unwrap(),
            node: "web".parse().unwrap(),
            host: "cloud".parse().unwrap(),
            uuid: Uuid::from_u128(1),
        };
        let mut written = Written::new(marks, FirstKey::generate().public, "debian-13");
        written.size = size;
        let server = json!({
            "id": 1, "name": "lab-web", "status": "running", "labels": written.labels(),
            "server_type": { "name": kind, "cores": 2, "memory": 4.0, "disk": 40.0 },
        });
        serde_json::from_value(server).unwrap()
    }

    #[test]
    fn another_type_than_the_one_that_stands_for_the_size_is_seen_and_the_same_is_not() {
        let asked = Size { cores: 2, memory: 3500, disk: 30 };
        let real = Size { cores: 2, memory: 4096, disk: 40 };
        let types = |kind: &str| BTreeMap::from([("web".parse().unwrap(), kind.to_owned())]);
        let seen = |size, types: &BTreeMap<NodeName, String>| server("cx23", size).machine(types).size;
        assert_eq!(seen(Some(asked), &types("cx23")), asked);
        assert_eq!(seen(Some(asked), &types("cx33")), Size { disk: asked.disk, ..real });
        assert_eq!(seen(Some(asked), &BTreeMap::new()), asked, "a node that the fleet does not have");
        assert_eq!(seen(None, &types("cx23")), real);
    }

    #[test]
    fn every_status_is_one_that_the_plan_knows() {
        let state = |status: &str| Server { status: status.into(), ..server("cx23", None) }.state();
        assert_eq!(["initializing", "starting"].map(state), [MachineState::Partial; 2]);
        assert_eq!(["off", "stopping", "migrating", "deleting"].map(state), [MachineState::Stopped; 4]);
        assert_eq!(
            ["running", "rebuilding", "unknown", "hibernating"].map(state),
            [MachineState::Running; 4]
        );
    }
}
