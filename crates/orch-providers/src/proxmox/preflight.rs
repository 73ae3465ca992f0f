//! What stands in the way of making machines, found out before anything is touched, all at once.

use std::collections::BTreeSet;

use orch_plan::MachineSpec;
use serde_json::Value as Json;

use super::advice;
use super::guest::{GuestKind, Listed};
use super::image::{self, Image};
use super::maker::Maker;
use super::read::Fields;
use super::trouble::Trouble;
use crate::api::encode;
use crate::preflight::{Obstacle, Preflight};

/// What making machines takes, wherever it is granted.
const PRIVILEGES: [&str; 15] = [
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "SDN.Use",
    "VM.Allocate",
    "VM.Audit",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.PowerMgmt",
];

/// What asking a machine for its address takes since version 9.
const AGENT: &str = "VM.GuestAgent.Audit";
/// What does so too, with everything else that can be asked of a machine.
const ANY_AGENT: &str = "VM.GuestAgent.Unrestricted";
/// What it took before; newer versions do not know it.
const OLD_AGENT: &str = "VM.Monitor";

impl Maker {
    pub(super) async fn preflight(&self, wanted: &[MachineSpec]) -> Preflight {
        if wanted.is_empty() {
            return Preflight::default();
        }
        let node = encode(&self.setup.proxmox.node);
        let (storages, bridges) =
            (format!("/nodes/{node}/storage"), format!("/nodes/{node}/network?type=any_bridge"));
        let (version, nodes, storages, bridges, permissions, listed) = tokio::join!(
            self.caller.get("/version"),
            self.caller.get("/nodes"),
            self.caller.get(&storages),
            self.caller.get(&bridges),
            self.caller.get("/access/permissions"),
            self.list(),
        );
        let mut obstacles = Vec::new();
        let version = match version {
            Ok(version) => version,
            // Where it does not even say which version it is, everything else is said by that.
            Err(trouble) => {
                return Preflight { obstacles: vec![self.stands(trouble)], ..Preflight::default() };
            }
        };
        obstacles.extend(self.node_stands(&nodes));
        // What is there on a node that is not there is no news.
        if obstacles.is_empty() {
            obstacles.extend(self.storage_stands(&storages, wanted));
            obstacles.extend(self.bridge_stands(&bridges));
        }
        obstacles.extend(self.privilege_stands(&permissions, &self.privileges(&version, wanted)));
        match listed {
            Ok(listed) => obstacles.extend(self.image_stands(wanted, &listed).await),
            Err(trouble) => obstacles.push(self.stands(trouble)),
        }
        Preflight { obstacles, ..Preflight::default() }
    }

    fn stands(&self, trouble: Trouble) -> Obstacle {
        let error = trouble.told(&self.setup.host);
        Obstacle { what: error.to_string(), hint: error.hint() }
    }

    fn node_stands(&self, answer: &Result<Json, Trouble>) -> Option<Obstacle> {
        let names = named("GET /nodes", answer, "node");
        let node = &self.setup.proxmox.node;
        match names {
            Err(trouble) => Some(self.stands(trouble)),
            Ok(names) if names.contains(node) => None,
            Ok(names) => {
                let shown: Vec<_> = names.into_iter().collect();
                let what = format!("`{}` has no node `{node}`", self.setup.host);
                let hint =
                    format!("write one of its nodes as `node` into the host's file: {}", shown.join(", "));
                Some(Obstacle { what, hint })
            }
        }
    }

    fn storage_stands(&self, answer: &Result<Json, Trouble>, wanted: &[MachineSpec]) -> Vec<Obstacle> {
        let (host, datastore) = (&self.setup.host, &self.setup.proxmox.datastore);
        let answer = match answer {
            Ok(answer) => answer,
            Err(trouble) => return vec![self.stands(trouble.clone())],
        };
        let entries = match Fields::each("GET /nodes/storage", answer) {
            Ok(entries) => entries,
            Err(trouble) => return vec![self.stands(trouble)],
        };
        let mut obstacles = Vec::new();
        match entries.iter().find(|entry| entry.text("storage").as_ref() == Some(datastore)) {
            None => obstacles.push(Obstacle {
                what: format!("`{host}` has no storage `{datastore}`, or shows none to this token"),
                hint: format!(
                    "see `pvesm status`, and grant `Datastore.AllocateSpace` at /storage/{datastore}"
                ),
            }),
            Some(entry) => {
                let disks: u64 = wanted.iter().map(|spec| u64::from(spec.size.disk) << 30).sum();
                let largest =
                    wanted.iter().map(|spec| u64::from(spec.size.disk) << 30).max().unwrap_or_default();
                // Disks are filled only as they are written to, so all together may be more than there is.
                if let Some(free) = entry.number("avail").filter(|free| *free < largest) {
                    let (free, disks) = (free >> 30, disks >> 30);
                    let what = format!(
                        "storage `{datastore}` of `{host}` has {free} GB left, and {disks} GB are to be made"
                    );
                    obstacles.push(Obstacle { what, hint: advice::hint("no space left") });
                }
            }
        }
        let takes_discs = entries.iter().any(|entry| {
            entry.text("content").is_some_and(|content| content.split(',').any(|kind| kind.trim() == "iso"))
        });
        let has_machines = wanted.iter().any(|spec| image::kind(spec) == GuestKind::Qemu);
        if has_machines && !takes_discs && self.snippets().is_none() {
            obstacles.push(Obstacle {
                what: format!("no storage of `{host}` takes discs for first boots"),
                hint: "allow the content `iso` on one (`pvesm set local --content iso,vztmpl,import`), and grant `Datastore.AllocateTemplate` there".into(),
            });
        }
        obstacles
    }

    fn bridge_stands(&self, answer: &Result<Json, Trouble>) -> Option<Obstacle> {
        // Who may not see the network may still use it.
        let names = named("GET /nodes/network", answer, "iface").ok().filter(|names| !names.is_empty())?;
        let bridge = self.setup.proxmox.bridge.to_string();
        if names.contains(&bridge) {
            return None;
        }
        let what =
            format!("node `{}` of `{}` has no bridge `{bridge}`", self.setup.proxmox.node, self.setup.host);
        let shown: Vec<_> = names.into_iter().collect();
        Some(Obstacle {
            what,
            hint: format!("write one that it has as `bridge` into the host's file: {}", shown.join(", ")),
        })
    }

    /// What making these machines takes.
    fn privileges(&self, version: &Json, wanted: &[MachineSpec]) -> Vec<&'static str> {
        let mut privileges = PRIVILEGES.to_vec();
        let machines = || wanted.iter().filter(|spec| image::kind(spec) == GuestKind::Qemu);
        let is_copied = machines().any(|spec| matches!(Image::of(&spec.image), Ok(Image::Template(_))));
        // A template may bring a drive for cloud-init, which is taken away.
        if is_copied || self.snippets().is_some() {
            privileges.push("VM.Config.Cloudinit");
        }
        let asks_agents = self.setup.reach.is_some() && self.setup.neighbours.is_none();
        if asks_agents && machines().next().is_some() {
            privileges.push(agent_privilege(version));
        }
        privileges
    }

    /// Privileges that the token has nowhere.
    fn privilege_stands(&self, answer: &Result<Json, Trouble>, needed: &[&str]) -> Option<Obstacle> {
        let paths = answer.as_ref().ok()?.as_object()?;
        let has = |privilege: &str| paths.values().any(|granted| granted.get(privilege).is_some());
        let does_instead = |privilege: &str| privilege == AGENT && has(ANY_AGENT);
        let is_missing = |privilege: &&str| !has(privilege) && !does_instead(privilege);
        let missing: Vec<&str> = needed.iter().copied().filter(is_missing).collect();
        if missing.is_empty() {
            return None;
        }
        let missing = missing.join(",");
        let what = format!("the token of `{}` lacks {missing}", self.setup.host);
        let hint = format!(
            "`pveum role modify <role> --append 1 --privs \"{missing}\"` with the role that it has (`pveum acl list`), or where it has none `pveum role add orch --privs \"{missing}\"`, then `pveum acl modify / --tokens 'user@realm!name' --roles orch`"
        );
        Some(Obstacle { what, hint })
    }

    /// Images and templates that are not there.
    async fn image_stands(&self, wanted: &[MachineSpec], listed: &[Listed]) -> Vec<Obstacle> {
        let images: BTreeSet<(&str, GuestKind)> =
            wanted.iter().map(|spec| (spec.image.as_str(), image::kind(spec))).collect();
        let mut obstacles = Vec::new();
        for (text, kind) in images {
            let found = match Image::of(text) {
                Ok(Image::Template(name)) => image::template(listed, name).map(|_| ()),
                Ok(volume) => self.volume_is_there(text, volume.storage().unwrap_or_default(), kind).await,
                Err(trouble) => Err(trouble),
            };
            obstacles.extend(found.err().map(|trouble| self.stands(trouble)));
        }
        obstacles
    }

    async fn volume_is_there(&self, volume: &str, storage: &str, kind: GuestKind) -> Result<(), Trouble> {
        let content = if kind == GuestKind::Lxc { "vztmpl" } else { "import" };
        let there = self.content(storage, content).await?;
        if there.iter().any(|known| known == volume) {
            return Ok(());
        }
        Err(Trouble::Refused(format!(
            "there is no volume `{volume}`: see `pvesm list {storage} --content {content}`"
        )))
    }
}

/// The privilege that asking a machine for its address takes in this version.
fn agent_privilege(version: &Json) -> &'static str {
    let text = version.get("version").and_then(Json::as_str).unwrap_or_default();
    let major = text.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < 9) { OLD_AGENT } else { AGENT }
}

/// What things in an answer are called.
fn named(call: &str, answer: &Result<Json, Trouble>, name: &str) -> Result<BTreeSet<String>, Trouble> {
    let answer = answer.as_ref().map_err(Trouble::clone)?;
    Ok(Fields::each(call, answer)?.iter().filter_map(|entry| entry.text(name)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_asking_a_machine_takes_is_called_differently_since_version_9() {
        assert_eq!(agent_privilege(&json!({ "version": "8.4.1", "release": "8.4" })), "VM.Monitor");
        for newer in [json!({ "version": "9.2.11" }), json!({ "version": "10.0" }), json!({})] {
            assert_eq!(agent_privilege(&newer), "VM.GuestAgent.Audit", "{newer}");
        }
    }
}
